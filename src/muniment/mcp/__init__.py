"""The MCP door: the tools that an agent needs and no others, over stdio and over streamable HTTP."""
