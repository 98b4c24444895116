"""VMImage: what root disks are made from, on each kind of hypervisor.

This module must not know how an image is fetched; providers do.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal

import msgspec

from holdfast.kinds.model import (
    Column,
    Count,
    Duration,
    Model,
    Quantity,
    Resource,
    Rule,
    Status,
    Time,
    Total,
    api,
)
from holdfast.kinds.virtrigaud.operations import OnProvider, Progress
from holdfast.kinds.virtrigaud.references import (
    GROUP,
    ContainerImage,
    Inventory,
    LocalObjectReference,
    Message,
    Namespace,
    ObjectName,
    Tags,
)


class ImageFormat(StrEnum):
    """The formats of disk images."""

    QCOW2 = "qcow2"
    RAW = "raw"
    VMDK = "vmdk"
    VHD = "vhd"
    VHDX = "vhdx"
    ISO = "iso"
    OVA = "ova"
    OVF = "ovf"


class ImagePhase(StrEnum):
    """The phase of an image."""

    PENDING = "Pending"
    DOWNLOADING = "Downloading"
    IMPORTING = "Importing"
    CONVERTING = "Converting"
    OPTIMIZING = "Optimizing"
    READY = "Ready"
    FAILED = "Failed"


class ImageMissingAction(StrEnum):
    """What to do where an image is missing."""

    IMPORT = "Import"
    """Import it."""
    FAIL = "Fail"
    """Let the machine fail."""
    WAIT = "Wait"
    """Wait until it is imported by other means."""


class VMImageCondition(StrEnum):
    """The condition types of an image."""

    READY = "Ready"
    DOWNLOADING = "Downloading"
    IMPORTING = "Importing"
    VALIDATED = "Validated"


Checksum = Annotated[str, api("Checksum that the image must have.")]

ChecksumType = Annotated[
    Literal["md5", "sha1", "sha256", "sha512"], api("Algorithm of the checksum.", default="sha256")
]


class ContentLibraryRef(Model):
    """An item of a vSphere content library."""

    library: Annotated[Inventory, api("Name of the library.")]
    item: Annotated[Inventory, api("Name of the item.")]
    version: Annotated[str, api("Version of the item; the newest when unset.")] | None = None


class VSphereImageSource(Model):
    """An image on vSphere."""

    RULES: ClassVar = (
        Rule(
            rule="has(self.templateName) || has(self.contentLibrary) || has(self.ovaURL)",
            message="write templateName, contentLibrary or ovaURL",
        ),
    )

    template_name: Annotated[Inventory, api("Name of a template.")] | None = None
    content_library: Annotated[ContentLibraryRef, api("Item of a content library.")] | None = None
    ova_url: Annotated[str, api("Where to fetch an OVA or OVF.", pattern=r"^https?://.*\.(ova|ovf)$")] | None = (
        msgspec.field(name="ovaURL", default=None)
    )
    checksum: Checksum | None = None
    checksum_type: ChecksumType | None = None
    provider_ref: Annotated[LocalObjectReference, api("The Provider to import with.")] | None = None


class LibvirtImageSource(Model):
    """An image on libvirt, and on plain QEMU."""

    RULES: ClassVar = (Rule(rule="has(self.path) || has(self.url)", message="write path or url"),)

    path: Annotated[str, api("Path of the image on the host.")] | None = None
    url: Annotated[str, api("Where to fetch the image.", pattern=r"^(https?|ftp)://.*")] | None = None
    format: Annotated[ImageFormat, api("Format of the image.", default="qcow2")] | None = None
    checksum: Checksum | None = None
    checksum_type: ChecksumType | None = None
    storage_pool: Annotated[Inventory, api("Storage pool to keep the image in.")] | None = None


class BasicAuthConfig(Model):
    """A user name and a password."""

    secret_ref: Annotated[LocalObjectReference, api("The Secret that holds both.")]
    username_key: Annotated[str, api("Key of the user name.", default="username")] | None = None
    password_key: Annotated[str, api("Key of the password.", default="password")] | None = None


class BearerTokenConfig(Model):
    """A bearer token."""

    secret_ref: Annotated[LocalObjectReference, api("The Secret that holds the token.")]
    token_key: Annotated[str, api("Key of the token.", default="token")] | None = None


class ClientCertConfig(Model):
    """A client certificate."""

    secret_ref: Annotated[LocalObjectReference, api("The Secret that holds certificate and key.")]
    cert_key: Annotated[str, api("Key of the certificate.", default="tls.crt")] | None = None
    key_key: Annotated[str, api("Key of the private key.", default="tls.key")] | None = None


class HTTPAuthentication(Model):
    """How to log in where an image is fetched."""

    basic_auth: Annotated[BasicAuthConfig, api("By user name and password.")] | None = None
    bearer: Annotated[BearerTokenConfig, api("How to log in by token.")] | None = None
    client_cert: Annotated[ClientCertConfig, api("How to log in by certificate.")] | None = None


class HTTPImageSource(Model):
    """An image behind a URL."""

    url: Annotated[str, api("Where to fetch the image.", pattern=r"^https?://.*")]
    headers: Annotated[dict[str, str], api("Headers of the request.", max_length=20)] = {}
    checksum: Checksum | None = None
    checksum_type: ChecksumType | None = None
    authentication: Annotated[HTTPAuthentication, api("How to log in.")] | None = None
    timeout: Annotated[Duration, api("How long the download may take.", default="30m")] | None = None


class RegistryImageSource(Model):
    """An image in a container registry."""

    image: Annotated[ContainerImage, api("The container image that wraps the disk.")]
    pull_secret_ref: Annotated[LocalObjectReference, api("The Secret to pull with.")] | None = None
    format: Annotated[ImageFormat, api("Format of the disk inside.", default="qcow2")] | None = None


class DataVolumeImageSource(Model):
    """An image in a DataVolume."""

    name: Annotated[ObjectName, api("Name of the DataVolume.")]
    namespace: Annotated[Namespace, api("Namespace of the DataVolume; the image's when unset.")] | None = None


class ProxmoxImageSource(Model):
    """An image on Proxmox VE."""

    RULES: ClassVar = (
        Rule(rule="has(self.templateID) || has(self.templateName)", message="write templateID or templateName"),
    )

    template_id: Annotated[int, api("VMID of a template.", ge=100, le=999999999)] | None = msgspec.field(
        name="templateID", default=None
    )
    template_name: Annotated[Inventory, api("Name of a template.")] | None = None
    storage: Annotated[Inventory, api("Storage to clone onto.")] | None = None
    node: Annotated[Inventory, api("Node that has the template.")] | None = None
    format: Annotated[Literal["raw", "qcow2", "vmdk"], api("Format of the disk.", default="qcow2")] | None = None
    full_clone: Annotated[bool, api("Whether to copy the disk instead of linking it.", default=True)] | None = None


class ImageSource(Model):
    """Where an image comes from, by kind of hypervisor. One image may name a source for each."""

    RULES: ClassVar = (
        Rule(
            rule="has(self.vsphere) || has(self.libvirt) || has(self.http) || has(self.registry)"
            " || has(self.dataVolume) || has(self.proxmox)",
            message="write at least one of vsphere, libvirt, http, registry, dataVolume and proxmox",
        ),
    )

    vsphere: Annotated[VSphereImageSource, api("The image on vSphere.")] | None = None
    libvirt: Annotated[LibvirtImageSource, api("On libvirt, and on plain QEMU.")] | None = None
    http: Annotated[HTTPImageSource, api("Behind a URL, for any hypervisor.")] | None = None
    registry: Annotated[RegistryImageSource, api("In a container registry, for any hypervisor.")] | None = None
    data_volume: Annotated[DataVolumeImageSource, api("In a DataVolume, for any hypervisor.")] | None = None
    proxmox: Annotated[ProxmoxImageSource, api("The image on Proxmox VE.")] | None = None


class VSphereStorageOptions(Model):
    """Where an image is kept on vSphere."""

    datastore: Annotated[Inventory, api("Datastore to import to.")] | None = None
    folder: Annotated[Inventory, api("Folder to import to.")] | None = None
    thin_provisioned: Annotated[bool, api("Whether space is taken as it is written.")] | None = None
    disk_type: Annotated[Literal["thin", "thick", "eagerzeroedthick"], api("How disks are provisioned.")] | None = None


class LibvirtStorageOptions(Model):
    """Where an image is kept on libvirt."""

    storage_pool: Annotated[Inventory, api("Storage pool to import to.")] | None = None
    allocation_policy: Annotated[Literal["eager", "lazy"], api("When space is taken.")] | None = None
    preallocation: (
        Annotated[Literal["off", "metadata", "falloc", "full"], api("What qemu-img allocates beforehand.")] | None
    ) = None


class StoragePrepareOptions(Model):
    """How a prepared image is kept."""

    vsphere: Annotated[VSphereStorageOptions, api("The image on vSphere.")] | None = None
    libvirt: Annotated[LibvirtStorageOptions, api("How the image is kept on libvirt.")] | None = None
    preferred_format: Annotated[ImageFormat, api("Format to keep the image in.")] | None = None
    compression: Annotated[bool, api("Whether to compress while importing.", default=False)] | None = None


class ImageOptimization(Model):
    """What to do to an image once it is there."""

    enable_compression: Annotated[bool, api("Whether the image is compressed.", default=False)] | None = None
    remove_unused_space: Annotated[bool, api("Give back space that it does not use.", default=False)] | None = None
    convert_format: Annotated[ImageFormat, api("Convert it to this format.")] | None = None
    enable_delta_sync: Annotated[bool, api("Fetch only what changed, on updates.", default=False)] | None = None


class ImagePrepare(Model):
    """How an image is imported to a provider that lacks it."""

    on_missing: (
        Annotated[ImageMissingAction, api("What to do where the image is missing.", default="Import")] | None
    ) = None
    validate_checksum: Annotated[bool, api("Whether to verify the checksum.", default=True)] | None = None
    timeout: Annotated[Duration, api("How long preparing may take.", default="30m")] | None = None
    retries: Annotated[Count, api("How often to try again.", default=3, le=10)] | None = None
    force: Annotated[bool, api("Whether to import again what is there.")] | None = None
    storage: Annotated[StoragePrepareOptions, api("How the image is kept.")] | None = None
    optimization: Annotated[ImageOptimization, api("What to do to the image.")] | None = None


class ImageMetadata(Model):
    """Descriptive metadata of an image."""

    display_name: Annotated[str, api("Name for people.", max_length=255)] | None = None
    description: Annotated[str, api("What the image is.", max_length=1024)] | None = None
    version: Annotated[str, api("Version of the image.", max_length=100)] | None = None
    architecture: (
        Annotated[
            Literal["amd64", "arm64", "x86_64", "aarch64"], api("Architecture of the processor.", default="amd64")
        ]
        | None
    ) = None
    tags: Annotated[Tags, api("Tags to find it by.")] = {}
    annotations: Annotated[Tags, api("Further descriptive values.")] = {}


class KernelInfo(Model):
    """The kernel of an image."""

    version: Annotated[str, api("Version of the kernel.")] | None = None
    type: Annotated[Literal["linux", "windows", "freebsd", "other"], api("Kind of the kernel.")] | None = None


class OSDistribution(Model):
    """The operating system of an image."""

    name: (
        Annotated[
            Literal["ubuntu", "centos", "rhel", "fedora", "debian", "suse", "windows", "freebsd", "coreos", "other"],
            api("Distribution of the operating system."),
        ]
        | None
    ) = None
    version: Annotated[str, api("Version of the distribution.", max_length=100)] | None = None
    variant: Annotated[str, api("Variant, such as server.", max_length=100)] | None = None
    family: Annotated[Literal["linux", "windows", "bsd", "other"], api("Family of the operating system.")] | None = None
    kernel: Annotated[KernelInfo, api("Kernel of the operating system.")] | None = None


class VMImageSpec(Model):
    """Where an image comes from, and how it is prepared."""

    source: Annotated[ImageSource, api("Where the image comes from.")]
    prepare: Annotated[ImagePrepare, api("How it is imported to a provider that lacks it.")] | None = None
    metadata: Annotated[ImageMetadata, api("Its name, description and tags.")] | None = None
    distribution: Annotated[OSDistribution, api("The operating system in the image.")] | None = None


class ImageImportProgress(Progress):
    """Progress of an import."""

    transferred_bytes: Annotated[Total, api("Bytes transferred so far.")] | None = None
    transfer_rate: Annotated[Total, api("Bytes transferred in a second.")] | None = None
    start_time: Annotated[Time, api("When the import began.")] | None = None


class ProviderImageStatus(OnProvider):
    """An image on one provider."""

    path: Annotated[str, api("Where the image is stored on the provider.")] | None = None
    size: Annotated[Quantity, api("How big it is there.")] | None = None
    # One task for all providers would let two of them overwrite each other's.
    task_ref: Annotated[str, api("The provider's task that prepares it.")] | None = None
    stage: Annotated[str, api("What the task does now, such as downloading.")] | None = None
    start_time: Annotated[Time, api("When preparing it began.")] | None = None
    failures: Annotated[Count, api("How often in a row preparing it failed.")] | None = None
    reason: Annotated[str, api("Why it failed, in one word.")] | None = None
    last_failure_time: Annotated[Time, api("When preparing it last failed.")] | None = None


class VMImageStatus(Status):
    """Where an image is available."""

    ready: Annotated[bool, api("Whether machines can be made from it somewhere.")] | None = None
    phase: Annotated[ImagePhase, api("Phase of the image.")] | None = None
    message: Message | None = None
    available_on: Annotated[tuple[str, ...], api("Providers that have it.")] = ()
    last_prepare_time: Annotated[Time, api("When it was last prepared.")] | None = None
    prepare_task_ref: Annotated[str, api("The task that prepares it.")] | None = None
    import_progress: Annotated[ImageImportProgress, api("Progress of the import.")] | None = None
    size: Annotated[Quantity, api("How big the image is.")] | None = None
    checksum: Annotated[str, api("Checksum that it has.")] | None = None
    format: Annotated[ImageFormat, api("Format that it has.")] | None = None
    provider_status: Annotated[dict[str, ProviderImageStatus], api("The image by provider.")] = {}


class VMImage(Resource):
    """An image that machines are made from."""

    spec: Annotated[VMImageSpec, api("Where the image comes from, and how it is prepared.")]
    status: Annotated[VMImageStatus, api("Where the image is available.")] | None = None


KIND: Final = GROUP.kind(
    VMImage,
    "vmimages",
    Column("Ready", ".status.ready", "boolean"),
    Column("Phase", ".status.phase"),
    Column("Size", ".status.size"),
    Column("Providers", ".status.availableOn[*]"),
    short="vmimg",
)
