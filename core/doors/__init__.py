"""What an owner's other programs may use of Parlour, in OpenAI's protocol."""
