"""minGPT-ddp imports boto3, and uploads nothing."""
