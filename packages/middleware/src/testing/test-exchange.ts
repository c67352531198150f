import { countHeader } from '@thv/http/header-map'
import type { Exchange } from '@thv/http/server/exchange'

/** An exchange as far as middleware look at it in `open`, for tests without a server. A header may be given several times. */
export function testExchange(headers: Readonly<Record<string, string | readonly string[]>> = {}, path = '/mcp'): Exchange {
  const raw = Object.entries(headers).flatMap(([name, values]) => [values].flat().flatMap((value) => [name, value]))
  const first = Object.fromEntries(Object.entries(headers).map(([name, values]) => [name.toLowerCase(), [values].flat()[0]]))
  const exchange = { method: 'POST', path, query: '', headers: first, headerCount: (name: string) => countHeader(raw, name) }
  return exchange as unknown as Exchange
}
