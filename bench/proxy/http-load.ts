import { Client, type Dispatcher } from 'undici'
import { BASE_HEADERS, callHeaders, callText, checkAnswer, checkLarge, checkList, INITIALIZE, INITIALIZED } from './load-messages.ts'
import type { Era, Tool } from './load-plan.ts'
import type { LoadSession } from './load-session.ts'

export interface HttpLoadOptions {
  readonly url: string
  readonly headers: readonly string[]
  readonly era: Era
  readonly tool: Tool
  /** Makes its texts different from those of all others. */
  readonly name: string
}

/** A client with one connection, and in the legacy era one session. */
export class HttpLoadSession implements LoadSession {
  readonly #options: HttpLoadOptions
  readonly #client: Client
  readonly #path: string
  #headers: string[] = []
  #sessionId: string | undefined
  #calls = 0

  constructor(options: HttpLoadOptions) {
    const { origin, pathname } = new URL(options.url)
    this.#options = options
    this.#path = pathname
    this.#client = new Client(origin, { keepAliveTimeout: 600_000, keepAliveMaxTimeout: 600_000, allowH2: false })
  }

  async open(): Promise<void> {
    const { era, tool, headers: own } = this.#options
    if (era === 'legacy') {
      const { status, headers } = await this.#send('POST', [...BASE_HEADERS, ...own], INITIALIZE)
      this.#sessionId = typeof headers['mcp-session-id'] === 'string' ? headers['mcp-session-id'] : undefined
      if (status !== 200 || this.#sessionId === undefined) throw new Error(`initialize was answered with ${status} and no session`)
    }
    this.#headers = [...callHeaders(era, tool, this.#sessionId), ...own]
    if (era === 'legacy') {
      const { status } = await this.#send('POST', this.#headers, INITIALIZED)
      if (status !== 202) throw new Error(`notifications/initialized was answered with ${status}`)
    }
    await this.call() // opens the connection where there was no handshake
  }

  async call(): Promise<void> {
    const { era, tool, name } = this.#options
    const id = ++this.#calls
    const text = `${name}.${id}`
    const { status, body } = await this.#send('POST', this.#headers, callText(era, tool, { id, text }))
    if (status !== 200) throw new Error(`a call was answered with ${status}: ${body.slice(0, 500)}`)
    if (tool === 'list') checkList(body, id)
    else checkAnswer(body, { era, id, text })
    if (tool === 'large') checkLarge(body, id)
  }

  async close(keep: boolean): Promise<void> {
    if (this.#sessionId !== undefined && !keep) await this.#send('DELETE', this.#headers, null)
    await this.#client.close()
  }

  #send(method: Dispatcher.HttpMethod, headers: string[], body: string | null): Promise<Answered> {
    const exchange = new Exchange()
    this.#client.dispatch({ method, path: this.#path, headers, body }, exchange)
    return exchange.done
  }
}

interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

class Exchange implements Dispatcher.DispatchHandler {
  readonly done: Promise<Answered>
  readonly #resolve: (answered: Answered) => void
  readonly #reject: (error: Error) => void
  #status = 0
  #headers: Answered['headers'] = {}
  #body = ''

  constructor() {
    const { promise, resolve, reject } = Promise.withResolvers<Answered>()
    this.done = promise
    this.#resolve = resolve
    this.#reject = reject
  }

  onRequestStart(): void {}

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: Answered['headers']): void {
    this.#status = status
    this.#headers = headers
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#body += chunk.toString('latin1') // the texts are ASCII
  }

  onResponseEnd(): void {
    this.#resolve({ status: this.#status, headers: this.#headers, body: this.#body })
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#reject(error)
  }
}
