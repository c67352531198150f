import type { WireClient } from '@thv/gateway/testing/wire-client'
import { SseDecoder, type SseEvent } from '@thv/mcp/sse-decoder'
import { expect } from 'vitest'

/** An event stream that is read while it comes. */
export class OpenStream {
  readonly events: SseEvent[] = []
  /** Rejects if the connection breaks. */
  readonly ended: Promise<void>

  constructor({ body }: Response) {
    this.ended = this.#read(body)
    this.ended.catch(() => undefined)
  }

  /** The id of the first event that has one. */
  async eventId(): Promise<string> {
    const found = () => this.events.find(({ id }) => id !== undefined)?.id
    await expect.poll(found, { timeout: 30_000 }).toBeDefined()
    return found() ?? ''
  }

  get messages(): unknown[] {
    return this.events.flatMap(({ data }) => (data === '' ? [] : [JSON.parse(data)]))
  }

  async #read(body: Response['body']): Promise<void> {
    const decoder = new SseDecoder((event) => this.events.push(event))
    for await (const chunk of body ?? []) decoder.push(chunk)
  }
}

/** A call of a legacy client, with the id `call-1`. */
export async function callOpen({ url, sessionId = '' }: WireClient, name: string): Promise<OpenStream> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-session-id': sessionId },
    body: JSON.stringify({ jsonrpc: '2.0', id: 'call-1', method: 'tools/call', params: { name } }),
  })
  return new OpenStream(response)
}
