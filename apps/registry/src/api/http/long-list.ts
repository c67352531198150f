import { once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import type { ApiRequest } from './route.ts'

const ITEMS_PER_TURN = 500

/** `{"<name>":[…]}` of any length: written in turns, so that other requests are answered between, and as fast as the client reads. */
export async function sendList({ exchange }: ApiRequest, name: string, items: readonly unknown[]): Promise<void> {
  const { response, signal } = exchange
  if (exchange.closed || response.destroyed) return
  response.writeHead(200, ['Content-Type', 'application/json', 'Cache-Control', 'no-store'])
  if (exchange.method === 'HEAD') return void response.end()
  response.write(`{"${name}":[`)
  for (let start = 0; start < items.length; start += ITEMS_PER_TURN) {
    const text = items
      .slice(start, start + ITEMS_PER_TURN)
      .map((item) => JSON.stringify(item))
      .join(',')
    if (!response.write(start === 0 ? text : `,${text}`)) await drained(response, signal)
    else await setImmediate()
    if (exchange.closed) return
  }
  response.end(']}\n')
}

/** A client that takes nothing is cut off by the server, and then the signal aborts. */
async function drained(response: ApiRequest['exchange']['response'], signal: AbortSignal): Promise<void> {
  try {
    await once(response, 'drain', { signal })
  } catch (error) {
    if (!signal.aborted) throw error // the client is gone
  }
}
