"""gRPC plumbing shared by all services and clients; knows nothing of any one service."""
