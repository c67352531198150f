import { McpErrorResponse } from '@thv/mcp/client/client-errors'

/** A client did not answer a question of a backend: it refused, cannot be asked this, or there was no way to it. */
export class ClientRefused extends McpErrorResponse {}
