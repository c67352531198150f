import type { McpClient } from '@thv/mcp/client/mcp-client'

/** Of one backend; each may hold a session there. */
const MAX_CLASSES = 1_000

/** Clients by class of credentials. The one that was used longest ago leaves when there are too many. */
export class SharedClients {
  readonly #open: () => McpClient
  readonly #clients = new Map<string, McpClient>()

  constructor(open: () => McpClient) {
    this.#open = open
  }

  of(key: string): McpClient {
    const known = this.#clients.get(key)
    const client = known ?? this.#open()
    this.#clients.delete(key)
    this.#clients.set(key, client)
    if (this.#clients.size > MAX_CLASSES) this.#dropOldest()
    return client
  }

  async close(): Promise<void> {
    const all = [...this.#clients.values()]
    this.#clients.clear()
    await Promise.all(all.map((client) => client.close()))
  }

  #dropOldest(): void {
    const [oldest] = this.#clients
    if (oldest === undefined) return
    this.#clients.delete(oldest[0])
    void oldest[1].close()
  }
}
