"""Where the files of a pod come from.

Written in the notation of `notation`; facts alone, no behaviour.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = """
Volume -- A named directory or device for the containers of a pod; exactly one source.
  name! string -- How mounts refer to it.
  awsElasticBlockStore *AWSElasticBlockStoreVolumeSource; azureDisk *AzureDiskVolumeSource
  azureFile *AzureFileVolumeSource; cephfs *CephFSVolumeSource; cinder *CinderVolumeSource
  configMap *ConfigMapVolumeSource -- Files from a ConfigMap.
  csi *CSIVolumeSource -- Storage of a CSI driver, for as long as the pod lives.
  downwardAPI *DownwardAPIVolumeSource -- Files about the pod itself.
  emptyDir *EmptyDirVolumeSource -- A directory that lives as long as the pod.
  ephemeral *EphemeralVolumeSource -- A claim that lives as long as the pod.
  fc *FCVolumeSource; flexVolume *FlexVolumeSource; flocker *FlockerVolumeSource
  gcePersistentDisk *GCEPersistentDiskVolumeSource; gitRepo *GitRepoVolumeSource
  glusterfs *GlusterfsVolumeSource
  hostPath *HostPathVolumeSource -- A file or directory of the node.
  image *ImageVolumeSource -- Files of an OCI image.
  iscsi *ISCSIVolumeSource
  nfs *NFSVolumeSource -- A directory that an NFS server exports.
  persistentVolumeClaim *PersistentVolumeClaimVolumeSource -- A claim of the same namespace.
  photonPersistentDisk *PhotonPersistentDiskVolumeSource; portworxVolume *PortworxVolumeSource
  projected *ProjectedVolumeSource -- Several sources in one directory.
  quobyte *QuobyteVolumeSource; rbd *RBDVolumeSource; scaleIO *ScaleIOVolumeSource
  secret *SecretVolumeSource -- Files from a Secret.
  storageos *StorageOSVolumeSource; vsphereVolume *VsphereVirtualDiskVolumeSource

AWSElasticBlockStoreVolumeSource
  fsType string; partition int32; readOnly bool; volumeID! string

AzureDiskVolumeSource
  cachingMode *string = "ReadWrite"; diskName! string; diskURI! string; fsType *string = "ext4"
  kind *string = "Shared"; readOnly *bool = false

AzureFileVolumeSource
  readOnly bool; secretName! string; shareName! string

CephFSVolumeSource
  monitors! []string; path string; readOnly bool; secretFile string; secretRef *LocalObjectReference
  user string

CinderVolumeSource
  fsType string; readOnly bool; secretRef *LocalObjectReference; volumeID! string

ConfigMapVolumeSource
  name string; defaultMode *int32 = 420; items []KeyToPath; optional *bool

KeyToPath
  key! string; mode *int32; path! string

CSIVolumeSource
  driver! string; fsType *string; nodePublishSecretRef *LocalObjectReference; readOnly *bool
  volumeAttributes {}string

DownwardAPIVolumeSource
  defaultMode *int32 = 420; items []DownwardAPIVolumeFile

DownwardAPIVolumeFile
  fieldRef *ObjectFieldSelector; mode *int32; path! string; resourceFieldRef *ResourceFieldSelector

ObjectFieldSelector atomic
  apiVersion string = "v1"; fieldPath! string

ResourceFieldSelector atomic
  containerName string; divisor quantity = "0"; resource! string

EmptyDirVolumeSource
  medium string -- Empty for the node's disk, Memory for memory.
  sizeLimit *quantity -- How much may be written.

EphemeralVolumeSource
  volumeClaimTemplate *PersistentVolumeClaimTemplate

PersistentVolumeClaimTemplate
  metadata ObjectMeta; spec! PersistentVolumeClaimSpec

FCVolumeSource
  fsType string; lun *int32; readOnly bool; targetWWNs []string; wwids []string

FlexVolumeSource
  driver! string; fsType string; options {}string; readOnly bool; secretRef *LocalObjectReference

FlockerVolumeSource
  datasetName string; datasetUUID string

GCEPersistentDiskVolumeSource
  fsType string; partition int32; pdName! string; readOnly bool

GitRepoVolumeSource
  directory string; repository! string; revision string

GlusterfsVolumeSource
  endpoints! string; path! string; readOnly bool

HostPathVolumeSource
  type *string = ""; path! string

ImageVolumeSource
  pullPolicy string; reference string

ISCSIVolumeSource
  chapAuthDiscovery bool; chapAuthSession bool; fsType string; initiatorName string; iqn! string
  iscsiInterface string = "default"; lun! int32; portals []string; readOnly bool
  secretRef *LocalObjectReference; targetPortal! string

NFSVolumeSource
  path! string; readOnly bool; server! string

PersistentVolumeClaimVolumeSource
  claimName! string; readOnly bool

PhotonPersistentDiskVolumeSource
  fsType string; pdID! string

PortworxVolumeSource
  fsType string; readOnly bool; volumeID! string

ProjectedVolumeSource
  defaultMode *int32 = 420; sources []VolumeProjection

VolumeProjection
  clusterTrustBundle *ClusterTrustBundleProjection; configMap *ConfigMapProjection
  downwardAPI *DownwardAPIProjection; podCertificate *PodCertificateProjection; secret *SecretProjection
  serviceAccountToken *ServiceAccountTokenProjection

ClusterTrustBundleProjection
  name *string; labelSelector *LabelSelector; optional *bool; path! string; signerName *string

ConfigMapProjection
  name string; items []KeyToPath; optional *bool

DownwardAPIProjection
  items []DownwardAPIVolumeFile

PodCertificateProjection
  certificateChainPath string; credentialBundlePath string; keyPath string; keyType! string
  maxExpirationSeconds *int32; signerName! string; userAnnotations {}string

SecretProjection
  name string; items []KeyToPath; optional *bool

ServiceAccountTokenProjection
  audience string; expirationSeconds *int64 = 3600; path! string

QuobyteVolumeSource
  group string; readOnly bool; registry! string; tenant string; user string; volume! string

RBDVolumeSource
  fsType string; image! string; keyring string = "/etc/ceph/keyring"; monitors! []string; pool string = "rbd"
  readOnly bool; secretRef *LocalObjectReference; user string = "admin"

ScaleIOVolumeSource
  fsType string = "xfs"; gateway! string; protectionDomain string; readOnly bool
  secretRef! LocalObjectReference; sslEnabled bool; storageMode string = "ThinProvisioned"; storagePool string
  system! string; volumeName string

SecretVolumeSource
  defaultMode *int32 = 420; items []KeyToPath; optional *bool; secretName string

StorageOSVolumeSource
  fsType string; readOnly bool; secretRef *LocalObjectReference; volumeName string; volumeNamespace string

VsphereVirtualDiskVolumeSource
  fsType string; storagePolicyID string; storagePolicyName string; volumePath! string
"""
