import { SseDecoder, type SseEvent } from '@thv/mcp/sse-decoder'

/** An HTTP+SSE client that shows exactly what comes over its stream. */
export class SseWireClient implements AsyncDisposable {
  readonly response: Response
  readonly events: SseEvent[] = []
  /** As the server named it. */
  endpoint = ''
  /** The stream has ended. */
  ended = false
  readonly #url: string
  readonly #leave: AbortController

  private constructor(url: string, response: Response, leave: AbortController) {
    this.#url = url
    this.response = response
    this.#leave = leave
  }

  /** Waits for the endpoint, or for the answer that there is none. */
  static async open(url: string, headers: Record<string, string> = {}): Promise<SseWireClient> {
    const leave = new AbortController()
    const response = await fetch(url, { headers: { accept: 'text/event-stream', ...headers }, signal: leave.signal })
    const client = new SseWireClient(url, response, leave)
    if (response.status !== 200) return client
    void client.#read()
    while (client.endpoint === '' && !client.ended) await new Promise((resolve) => setTimeout(resolve, 2))
    return client
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
  get messages(): any[] {
    return this.events.map(({ data }) => JSON.parse(data))
  }

  async post(message: object, endpoint = this.endpoint): Promise<Response> {
    const url = new URL(endpoint, this.#url)
    return await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    })
  }

  /** Posts a request and waits for its answer on the stream. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
  async request(id: string | number, method: string, params: object = {}): Promise<any> {
    const posted = await this.post({ id, method, params })
    if (posted.status !== 202) throw new Error(`${posted.status} ${await posted.text()}`)
    await posted.body?.cancel()
    return await this.answer(id)
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
  async answer(id: string | number): Promise<any> {
    for (;;) {
      const found = this.messages.find((message) => message.id === id && message.method === undefined)
      if (found !== undefined) return found
      if (this.ended) throw new Error(`the stream ended without an answer to ${id}`)
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  }

  async initialize(): Promise<void> {
    await this.request('init', 'initialize', {
      protocolVersion: '2024-11-05',
      capabilities: {},
      clientInfo: { name: 'sse-wire', version: '1' },
    })
    await (await this.post({ method: 'notifications/initialized' })).body?.cancel()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#leave.abort()
  }

  async #read(): Promise<void> {
    const decoder = new SseDecoder((event) => {
      if (event.event === 'endpoint') this.endpoint = event.data
      else this.events.push(event)
    })
    try {
      for await (const chunk of this.response.body ?? []) decoder.push(chunk)
    } catch {
      // cut off, or left by the test
    }
    this.ended = true
  }
}
