"""The messages of the contract, generated from `provider.proto` by `make proto`."""
