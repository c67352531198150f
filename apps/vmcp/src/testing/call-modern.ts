const MODERN = '2026-07-28'
const CAPABILITIES = { elicitation: { form: {} }, sampling: {}, roots: {} }

export interface ModernAnswer {
  readonly result?: {
    readonly resultType: string
    readonly requestState?: string
    readonly inputRequests?: object
    readonly content?: unknown
  }
  readonly error?: { readonly code: number; readonly message: string; readonly data?: { readonly reason?: string } }
}

/** One `tools/call` of a modern client that can be asked anything, as it stands on the wire. */
export async function callModern(
  url: string,
  name: string,
  more: Readonly<Record<string, unknown>> & {
    readonly signal?: AbortSignal
    readonly capabilities?: object
    readonly token?: string
    readonly fetch?: typeof fetch
  } = {},
): Promise<ModernAnswer> {
  const { signal, capabilities = CAPABILITIES, token, ...params } = more
  const meta = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientCapabilities': capabilities,
    'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' },
  }
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      'mcp-protocol-version': MODERN,
      'mcp-method': 'tools/call',
      'mcp-name': name,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {}, ...params, _meta: meta } }),
    ...(signal && { signal }),
  })
  return (await response.json()) as ModernAnswer
}
