"""Back ends for services with protocols of their own, over HTTP without their packages."""
