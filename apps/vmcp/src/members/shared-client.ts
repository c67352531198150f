import type {
  CallOptions,
  ListenFilter,
  Listening,
  ListenOptions,
  ListOptions,
  McpClient,
  PassOptions,
  RequestOptions,
} from '@thv/mcp/client/mcp-client'
import type { JsonObject } from '@thv/mcp/json-rpc'
import type { OpenClient } from './shared-clients.ts'

export interface SharedClientOptions {
  /** The client, opened where it is not, with one more use. */
  take(): OpenClient
  /** One use less. */
  done(open: OpenClient): void
  /** The client, if it is open. */
  now(): McpClient | undefined
  end(): Promise<void>
}

/** A client that is open while it is used: each request and each subscription counts as a use until it ends. */
export class SharedClient implements McpClient {
  readonly #options: SharedClientOptions
  /** Its era and capabilities hold for the request that found them out, also when it has left meanwhile. */
  #used: McpClient | undefined

  constructor(options: SharedClientOptions) {
    this.#options = options
  }

  get era() {
    return this.#current?.era
  }

  get protocolVersion() {
    return this.#current?.protocolVersion
  }

  get transport() {
    return this.#current?.transport
  }

  get serverInfo() {
    return this.#current?.serverInfo
  }

  get capabilities(): JsonObject {
    return this.#current?.capabilities ?? {}
  }

  get instructions() {
    return this.#current?.instructions
  }

  connect(options?: CallOptions): Promise<void> {
    return this.#use((client) => client.connect(options))
  }

  request(method: string, params?: JsonObject, options?: RequestOptions): Promise<JsonObject> {
    return this.#use((client) => client.request(method, params, options))
  }

  pass(method: string, params: JsonObject, options: PassOptions): Promise<JsonObject | string> {
    return this.#use((client) => client.pass(method, params, options))
  }

  list(method: string, options?: ListOptions): Promise<readonly JsonObject[]> {
    return this.#use((client) => client.list(method, options))
  }

  notify(method: string, params?: JsonObject, options?: CallOptions): Promise<void> {
    return this.#use((client) => client.notify(method, params, options))
  }

  ping(options?: CallOptions): Promise<void> {
    return this.#use((client) => client.ping(options))
  }

  async listen(filter: ListenFilter, options: ListenOptions): Promise<Listening> {
    const open = this.#take()
    const end = () => this.#options.done(open)
    try {
      const listening = await open.client.listen(filter, options)
      listening.done.then(end, end)
      return listening
    } catch (error) {
      end()
      throw error
    }
  }

  close(): Promise<void> {
    return this.#options.end()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  get #current(): McpClient | undefined {
    return this.#used ?? this.#options.now()
  }

  #take(): OpenClient {
    const open = this.#options.take()
    this.#used = open.client
    return open
  }

  async #use<T>(work: (client: McpClient) => Promise<T>): Promise<T> {
    const open = this.#take()
    try {
      return await work(open.client)
    } finally {
      this.#options.done(open)
    }
  }
}
