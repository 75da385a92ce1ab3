"""Whether the rules do what they promise: each rule's captures (`pairs`), judged in one run (`coverage`)."""
