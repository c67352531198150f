/** Lets a bounded number of works run at a time; others wait in their order. */
export interface Slots {
  use<T>(work: () => Promise<T>): Promise<T>
}

export function createSlots(count: number): Slots {
  let free = count
  const waiting: (() => void)[] = []
  return {
    async use(work) {
      if (free > 0) free -= 1
      else await new Promise<void>((resolve) => void waiting.push(resolve))
      try {
        return await work()
      } finally {
        const next = waiting.shift()
        if (next === undefined) free += 1
        else next()
      }
    },
  }
}
