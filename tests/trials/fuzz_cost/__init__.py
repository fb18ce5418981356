"""What parsers and schemas cost at worst: growing and nested inputs, from a seed."""
