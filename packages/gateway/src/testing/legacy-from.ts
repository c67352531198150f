import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'

/** A legacy client at another address of loopback, for what goes by the addresses of clients. */
export interface ClientAt {
  /** Opens a session and says no more. The id, or the status where there is none. */
  open(): Promise<string | number>
  /** The status of a request in a session. */
  use(sessionId: string): Promise<number>
}

export function clientAt(url: string, localAddress: string): ClientAt {
  const post = async (body: object, headers: Record<string, string> = {}) => {
    const type = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const call = request(url, { method: 'POST', headers: { ...type, ...headers }, localAddress, agent: false, timeout: 30_000 })
    call.on('timeout', () => call.destroy(new Error('no answer within 30 s')))
    call.end(JSON.stringify({ jsonrpc: '2.0', id: 1, ...body }))
    const [response] = (await once(call, 'response')) as [IncomingMessage]
    await text(response)
    return response
  }
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
  return {
    async open() {
      const { headers, statusCode = 0 } = await post({ method: 'initialize', params })
      const id = headers['mcp-session-id']
      return typeof id === 'string' ? id : statusCode
    },
    use: async (sessionId) => (await post({ method: 'tools/list' }, { 'mcp-session-id': sessionId })).statusCode ?? 0,
  }
}
