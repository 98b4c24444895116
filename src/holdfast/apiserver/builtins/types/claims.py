"""Claims for storage, as objects and as templates.

Written in the notation of `notation`; facts alone, no behaviour.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = """
PersistentVolumeClaim kind -- A request for storage, met by a volume.
  spec PersistentVolumeClaimSpec -- What is asked for.
  status PersistentVolumeClaimStatus -- What was found.

PersistentVolumeClaimSpec
  accessModes []string -- How the volume is to be mounted: ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod.
  dataSource *TypedLocalObjectReference; dataSourceRef *TypedObjectReference
  resources VolumeResourceRequirements -- How much storage is asked for.
  selector *LabelSelector -- Volumes that may be bound.
  storageClassName *string -- Class that provides the volume; an empty one means none.
  volumeAttributesClassName *string
  volumeMode *string = "Filesystem" -- Filesystem or Block.
  volumeName string -- The volume that is bound.

VolumeResourceRequirements
  limits {}quantity; requests {}quantity

PersistentVolumeClaimStatus
  accessModes []string; allocatedResourceStatuses {}string; allocatedResources {}quantity
  capacity {}quantity -- What the bound volume has.
  conditions [type]PersistentVolumeClaimCondition; currentVolumeAttributesClassName *string
  modifyVolumeStatus *ModifyVolumeStatus
  phase string = "Pending" -- Pending, Bound or Lost.

PersistentVolumeClaimCondition
  type! string; lastProbeTime time; lastTransitionTime time; message string; reason string; status! string

ModifyVolumeStatus
  status! string; targetVolumeAttributesClassName string
"""
