export interface SingleFlight<K, V> {
  /**
   * Starts `fn`, or joins the flight of the same key that is still in the air: all callers get the same promise. Nothing is
   * kept after it has landed, neither a value nor an error. `fn` must not wait for its own key: it would wait for itself.
   */
  run(key: K, fn: () => Promise<V>): Promise<V>
  /** Flights in the air. */
  readonly size: number
}

export function createSingleFlight<K, V>(): SingleFlight<K, V> {
  const flights = new Map<K, Promise<V>>()
  return {
    run(key, fn) {
      const inTheAir = flights.get(key)
      if (inTheAir) return inTheAir
      // Listed before fn starts, so that a call for the same key from inside fn joins instead of recursing.
      const { promise, resolve, reject } = Promise.withResolvers<V>()
      flights.set(key, promise)
      land(fn).then(
        (value) => {
          flights.delete(key)
          resolve(value)
        },
        (error) => {
          flights.delete(key)
          reject(error)
        },
      )
      return promise
    },
    get size() {
      return flights.size
    },
  }
}

/** Turns a synchronous throw into a rejection. */
async function land<V>(fn: () => Promise<V>): Promise<V> {
  return await fn()
}
