import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { createRelay, type Relay } from './relay.ts'

/**
 * A loopback TCP proxy that can behave like a bad network. It knows nothing of TLS or HTTP: a client verifies the real server's
 * certificate through it, and WebSockets pass too.
 */
export interface FaultyProxy extends AsyncDisposable {
  /** The target's URL with this proxy's port. */
  readonly url: string
  readonly port: number
  readonly counts: ProxyCounts
  /**
   * Half-open: sockets stay, and are accepted, but no byte and no end of a stream passes in either direction. With
   * `existingOnly`, connections made from now on work: the case of a router that has forgotten a connection.
   */
  blackhole(options?: { existingOnly?: boolean }): void
  /** Everything flows again, what was held back first. */
  heal(): void
  /** Resets (RST) every connection. New ones are accepted. Returns how many there were. */
  dropAll(): number
  /** Added to every byte in each direction, from now on. */
  setLatency(ms: number): void
  close(): Promise<void>
}

export interface ProxyCounts {
  readonly accepted: number
  readonly open: number
  readonly dropped: number
  /** Client to server. */
  readonly bytesUp: number
  /** Server to client. */
  readonly bytesDown: number
}

interface Link {
  readonly client: Socket
  readonly server: Socket
  readonly relays: readonly Relay[]
}

export async function startFaultyProxy(targetUrl: string): Promise<FaultyProxy> {
  const target = new URL(targetUrl)
  const links = new Set<Link>()
  const counts = { accepted: 0, dropped: 0, bytesUp: 0, bytesDown: 0 }
  let holdNew = false
  let latencyMs = 0

  const listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    counts.accepted++
    const server = connect({ host: target.hostname, port: Number(target.port || 443), allowHalfOpen: true, noDelay: true })
    const up = createRelay(client, server, (bytes) => {
      counts.bytesUp += bytes
    })
    const down = createRelay(server, client, (bytes) => {
      counts.bytesDown += bytes
    })
    const link: Link = { client, server, relays: [up, down] }
    for (const relay of link.relays) {
      relay.setLatency(latencyMs)
      if (holdNew) relay.hold()
    }
    links.add(link)
    let openSockets = 2
    for (const socket of [client, server]) {
      socket.once('close', () => {
        openSockets--
        if (openSockets === 0) links.delete(link)
      })
    }
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const port = (listener.address() as AddressInfo).port
  const eachRelay = (act: (relay: Relay) => void) => {
    for (const link of links) link.relays.forEach(act)
  }
  const dropAll = () => {
    const all = [...links]
    for (const { client, server } of all) {
      client.resetAndDestroy()
      server.resetAndDestroy()
    }
    counts.dropped += all.length
    return all.length
  }
  const close = async () => {
    const closed = listener.listening ? once(listener, 'close') : undefined
    listener.close()
    dropAll()
    await closed
  }

  return {
    url: `${target.protocol}//${target.hostname}:${port}`,
    port,
    get counts() {
      return { ...counts, open: links.size }
    },
    blackhole: ({ existingOnly = false } = {}) => {
      holdNew = !existingOnly
      eachRelay((relay) => relay.hold())
    },
    heal: () => {
      holdNew = false
      eachRelay((relay) => relay.release())
    },
    dropAll,
    setLatency: (ms) => {
      latencyMs = ms
      eachRelay((relay) => relay.setLatency(ms))
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
