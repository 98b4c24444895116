"""Volumes, classes of them and their drivers.

Written in the notation of `notation`; facts alone, no behaviour.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = """
PersistentVolume kind -- A piece of storage.
  spec PersistentVolumeSpec -- What it is.
  status PersistentVolumeStatus -- Where it stands.

PersistentVolumeSpec
  accessModes []string; awsElasticBlockStore *AWSElasticBlockStoreVolumeSource; azureDisk *AzureDiskVolumeSource
  azureFile *AzureFilePersistentVolumeSource; capacity {}quantity; cephfs *CephFSPersistentVolumeSource
  cinder *CinderPersistentVolumeSource; claimRef *ObjectReference; csi *CSIPersistentVolumeSource
  fc *FCVolumeSource; flexVolume *FlexPersistentVolumeSource; flocker *FlockerVolumeSource
  gcePersistentDisk *GCEPersistentDiskVolumeSource; glusterfs *GlusterfsPersistentVolumeSource
  hostPath *HostPathVolumeSource; iscsi *ISCSIPersistentVolumeSource; local *LocalVolumeSource
  mountOptions []string; nfs *NFSVolumeSource; nodeAffinity *VolumeNodeAffinity
  persistentVolumeReclaimPolicy string = "Retain"; photonPersistentDisk *PhotonPersistentDiskVolumeSource
  portworxVolume *PortworxVolumeSource; quobyte *QuobyteVolumeSource; rbd *RBDPersistentVolumeSource
  scaleIO *ScaleIOPersistentVolumeSource; storageClassName string; storageos *StorageOSPersistentVolumeSource
  volumeAttributesClassName *string; volumeMode *string = "Filesystem"
  vsphereVolume *VsphereVirtualDiskVolumeSource

AzureFilePersistentVolumeSource
  readOnly bool; secretName! string; secretNamespace *string; shareName! string

CephFSPersistentVolumeSource
  monitors! []string; path string; readOnly bool; secretFile string; secretRef *SecretReference; user string

CinderPersistentVolumeSource
  fsType string; readOnly bool; secretRef *SecretReference; volumeID! string

CSIPersistentVolumeSource
  controllerExpandSecretRef *SecretReference; controllerPublishSecretRef *SecretReference; driver! string
  fsType string; nodeExpandSecretRef *SecretReference; nodePublishSecretRef *SecretReference
  nodeStageSecretRef *SecretReference; readOnly bool; volumeAttributes {}string; volumeHandle! string

FlexPersistentVolumeSource
  driver! string; fsType string; options {}string; readOnly bool; secretRef *SecretReference

GlusterfsPersistentVolumeSource
  endpoints! string; endpointsNamespace *string; path! string; readOnly bool

ISCSIPersistentVolumeSource
  chapAuthDiscovery bool; chapAuthSession bool; fsType string; initiatorName string; iqn! string
  iscsiInterface string = "default"; lun! int32; portals []string; readOnly bool; secretRef *SecretReference
  targetPortal! string

LocalVolumeSource
  fsType *string; path! string

VolumeNodeAffinity
  required *NodeSelector

RBDPersistentVolumeSource
  fsType string; image! string; keyring string = "/etc/ceph/keyring"; monitors! []string; pool string = "rbd"
  readOnly bool; secretRef *SecretReference; user string = "admin"

ScaleIOPersistentVolumeSource
  fsType string = "xfs"; gateway! string; protectionDomain string; readOnly bool; secretRef! SecretReference
  sslEnabled bool; storageMode string = "ThinProvisioned"; storagePool string; system! string; volumeName string

StorageOSPersistentVolumeSource
  fsType string; readOnly bool; secretRef *ObjectReference; volumeName string; volumeNamespace string

PersistentVolumeStatus
  lastPhaseTransitionTime *time; message string; phase string = "Pending"; reason string

StorageClass kind -- A way to get storage.
  allowVolumeExpansion *bool -- Whether claims may grow.
  allowedTopologies []TopologySelectorTerm; mountOptions []string
  parameters {}string -- What the provisioner is told.
  provisioner! string -- Who makes the volumes.
  reclaimPolicy *string = "Delete" -- Delete or Retain.
  volumeBindingMode *string = "Immediate" -- Immediate or WaitForFirstConsumer.

TopologySelectorTerm atomic
  matchLabelExpressions []TopologySelectorLabelRequirement

TopologySelectorLabelRequirement
  key! string; values! []string

CSIDriver kind -- A storage driver in the cluster.
  spec! CSIDriverSpec -- What it can do.

CSIDriverSpec
  attachRequired *bool = true; fsGroupPolicy *string = "ReadWriteOnceWithFSType"
  nodeAllocatableUpdatePeriodSeconds *int64; podInfoOnMount *bool = false; preventPodSchedulingIfMissing *bool
  requiresRepublish *bool = false; seLinuxMount *bool = false; serviceAccountTokenInSecrets *bool
  storageCapacity *bool = false; tokenRequests []CSITokenRequest
  volumeLifecycleModes [set]string = ["Persistent"]

CSITokenRequest
  audience! string; expirationSeconds *int64

CSINode kind -- The storage drivers of a node.
  spec! CSINodeSpec -- The drivers.

CSINodeSpec
  drivers! [name]CSINodeDriver ~name

CSINodeDriver
  name! string; allocatable *VolumeNodeResources; nodeID! string; topologyKeys []string

VolumeNodeResources
  count int32

VolumeAttachment kind -- The wish that a volume be attached to a node.
  spec! VolumeAttachmentSpec -- What and where.
  status VolumeAttachmentStatus -- Whether it is.

VolumeAttachmentSpec
  attacher! string; nodeName! string; source! VolumeAttachmentSource

VolumeAttachmentSource
  inlineVolumeSpec *PersistentVolumeSpec; persistentVolumeName *string

VolumeAttachmentStatus
  attachError *VolumeError; attached! bool; attachmentMetadata {}string; detachError *VolumeError

VolumeError
  errorCode *int32; message string; time time
"""
