"""VMNetworkAttachments: networks that machines join."""
