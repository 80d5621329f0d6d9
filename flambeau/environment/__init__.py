"""What programs ask of the installation and run beside computation: versions, types, hub, monitoring."""
