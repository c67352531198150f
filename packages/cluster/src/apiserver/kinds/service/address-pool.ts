import { randomInt } from 'node:crypto'
import { formatFour, inRange, parseAddress, parseRange, rangeSize } from '../../objects/ip-address.ts'

/** Where Services get their addresses from. Stateless: the caller passes the addresses in use each time. */
export interface AddressPool {
  /** Why an address is not available, in the words of the real server; undefined when it is. */
  refusal(address: string, taken: ReadonlySet<string>): string | undefined
  /** A free one; undefined when there is none. */
  next(taken: ReadonlySet<string>): string | undefined
}

export const NOT_IN_RANGE = 'the provided network does not match the current range'
export const TAKEN = 'provided IP is already allocated'

/** Throws a RangeError for what is no range of IPv4 with room for an address. */
export function addressPool(text: string): AddressPool {
  const range = parseRange(text)
  const size = range === undefined ? 0 : Number(rangeSize(range))
  if (range === undefined || range.family !== 4 || size < 4) throw new RangeError(`not a range for the addresses of Services: ${text}`)
  // The first and the last address stand for the range itself.
  const count = size - 2
  const nth = (index: number) => formatFour(range.first + 1n + BigInt(index))
  // As on the real server: the lower end is given out last, so that a request for an address there finds it free.
  const reserved = Math.min(Math.max(16, Math.floor(size / 16)), 256, count)
  return {
    refusal(address, taken) {
      const parsed = parseAddress(address)
      if (parsed === undefined || !inRange(range, parsed)) return NOT_IN_RANGE
      const index = Number(parsed.value - range.first) - 1
      if (index < 0 || index >= count) return NOT_IN_RANGE
      return taken.has(formatFour(parsed.value)) ? TAKEN : undefined
    },
    next: (taken) => freeOf(reserved, count, nth, taken) ?? freeOf(0, reserved, nth, taken),
  }
}

/** Begins anywhere, so that an address is not soon another Service's after its first one is gone. */
function freeOf(from: number, to: number, nth: (index: number) => string, taken: ReadonlySet<string>): string | undefined {
  const count = to - from
  if (count <= 0) return undefined
  const start = randomInt(count)
  for (let step = 0; step < count; step++) {
    const address = nth(from + ((start + step) % count))
    if (!taken.has(address)) return address
  }
  return undefined
}

const FIRST_PORT = 30_000
const LAST_PORT = 32_767
/** Given out last, as the lower end of the addresses. */
const RESERVED_PORTS = 86

export function nodePortRefusal(port: number, taken: ReadonlySet<number>): string | undefined {
  if (port < FIRST_PORT || port > LAST_PORT)
    return `provided port is not in the valid range. The range of valid ports is ${FIRST_PORT}-${LAST_PORT}`
  return taken.has(port) ? 'provided port is already allocated' : undefined
}

export function nextNodePort(taken: ReadonlySet<number>): number | undefined {
  const bands: readonly (readonly [number, number])[] = [
    [FIRST_PORT + RESERVED_PORTS, LAST_PORT + 1],
    [FIRST_PORT, FIRST_PORT + RESERVED_PORTS],
  ]
  for (const [from, to] of bands) {
    const start = randomInt(to - from)
    for (let step = 0; step < to - from; step++) {
      const port = from + ((start + step) % (to - from))
      if (!taken.has(port)) return port
    }
  }
  return undefined
}
