import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { BoundedQueue } from './bounded-queue.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('BoundedQueue', () => {
  it('is first in, first out', async () => {
    const queue = new BoundedQueue<number>(3)
    for (const item of [1, 2, 3]) await queue.push(item)
    expect([await queue.shift(), await queue.shift(), await queue.shift()]).toEqual([1, 2, 3])
  })

  it('makes writers wait while it is full, and lets them in one by one in their order', async () => {
    const queue = new BoundedQueue<number>(1)
    const entered: number[] = []
    for (const item of [1, 2, 3]) void queue.push(item).then(() => entered.push(item))
    await turn()
    expect([entered, queue.size, queue.tryPush(9)]).toEqual([[1], 1, false])
    expect(await queue.shift()).toBe(1)
    await turn()
    expect([entered, queue.size]).toEqual([[1, 2], 1])
    expect([await queue.shift(), await queue.shift()]).toEqual([2, 3])
    await turn()
    expect([entered, queue.size]).toEqual([[1, 2, 3], 0])
  })

  it('serves waiting readers in their order', async () => {
    const queue = new BoundedQueue<string>(1)
    const readers = [queue.shift(), queue.shift()]
    expect(queue.tryPush('a')).toBe(true)
    expect(queue.tryPush('b')).toBe(true)
    expect(queue.size).toBe(0)
    await expect(Promise.all(readers)).resolves.toEqual(['a', 'b'])
  })

  it('takes an aborted writer out of the line, with its item', async () => {
    const queue = new BoundedQueue<number>(1)
    await queue.push(1)
    const controller = new AbortController()
    const given = queue.push(2, controller.signal)
    const patient = queue.push(3)
    controller.abort('given up')
    await expect(given).rejects.toBe('given up')
    await expect(queue.push(4, controller.signal)).rejects.toBe('given up')
    expect(await queue.shift()).toBe(1)
    await patient
    expect(await queue.shift()).toBe(3)
  })

  it('takes an aborted reader out of the line; it eats no item', async () => {
    const queue = new BoundedQueue<number>(1)
    const controller = new AbortController()
    const given = queue.shift(controller.signal)
    const patient = queue.shift()
    controller.abort('given up')
    await expect(given).rejects.toBe('given up')
    await queue.push(1)
    await expect(patient).resolves.toBe(1)
    await queue.push(2)
    await expect(queue.shift(controller.signal)).rejects.toBe('given up')
    await expect(queue.shift()).resolves.toBe(2)
  })

  it('refuses waiting and new writers once closed, and lets readers drain', async () => {
    const queue = new BoundedQueue<number>(1)
    await queue.push(1)
    const waiting = queue.push(2)
    queue.close()
    queue.close()
    expect(queue.closed).toBe(true)
    await expect(waiting).rejects.toMatchObject({ code: 'queue_closed' })
    await expect(queue.push(3)).rejects.toMatchObject({ code: 'queue_closed' })
    expect(queue.tryPush(3)).toBe(false)
    expect([await queue.shift(), await queue.shift(), await queue.shift()]).toEqual([1, undefined, undefined])
  })

  it('ends waiting readers when closed', async () => {
    const queue = new BoundedQueue<number>(1)
    const readers = [queue.shift(), queue.shift()]
    queue.close()
    await expect(Promise.all(readers)).resolves.toEqual([undefined, undefined])
  })

  it('leaves no listener on a signal once the wait is over', async () => {
    const queue = new BoundedQueue<number>(1)
    const { signal } = new AbortController()
    const add = vi.spyOn(signal, 'addEventListener')
    const remove = vi.spyOn(signal, 'removeEventListener')
    const reader = queue.shift(signal)
    await queue.push(1)
    await reader
    await queue.push(2)
    const writer = queue.push(3, signal)
    await queue.shift()
    await writer
    const refused = queue.push(4, signal)
    queue.close()
    await expect(refused).rejects.toMatchObject({ code: 'queue_closed' })
    expect(add).toHaveBeenCalledTimes(3)
    expect(remove.mock.calls.map((call) => call[1])).toEqual(add.mock.calls.map((call) => call[1]))
  })

  it('can be iterated until closed, also over items that are undefined; leaving the loop does not close it', async () => {
    const queue = new BoundedQueue<number | undefined>(4)
    for (const item of [1, undefined, 3]) await queue.push(item)
    for await (const item of queue) if (item === 1) break
    expect(queue.closed).toBe(false)
    queue.close()
    const rest: (number | undefined)[] = []
    for await (const item of queue) rest.push(item)
    expect(rest).toEqual([undefined, 3])
  })

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('refuses a capacity of %d', (capacity) => {
    expect(() => new BoundedQueue(capacity)).toThrow(RangeError)
  })
})

type Step = { op: 'push' | 'tryPush' | 'shift' | 'close' } | { op: 'abort'; index: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ op: fc.constantFrom('push' as const, 'tryPush' as const, 'shift' as const) }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('abort' as const), index: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('close' as const) }) },
)

/** The queue as plain lists of what is waiting; `outcomes` by the number of the call. */
class Model {
  items: number[] = []
  pushers: number[] = []
  readers: number[] = []
  closed = false
  readonly outcomes: (string | undefined)[] = []
  readonly capacity: number

  constructor(capacity: number) {
    this.capacity = capacity
  }

  push(call: number, wait: boolean): void {
    if (this.closed) this.outcomes[call] = wait ? 'queue_closed' : 'false'
    else if (this.items.length < this.capacity) {
      this.items.push(call)
      this.outcomes[call] = wait ? 'in' : 'true'
    } else if (wait) this.pushers.push(call)
    else this.outcomes[call] = 'false'
    this.match()
  }

  shift(call: number): void {
    if (this.closed && this.items.length === 0) this.outcomes[call] = 'end'
    else this.readers.push(call)
    this.match()
  }

  abort(call: number): void {
    if (this.outcomes[call] !== undefined) return
    this.pushers = this.pushers.filter((other) => other !== call)
    this.readers = this.readers.filter((other) => other !== call)
    this.outcomes[call] = 'aborted'
  }

  close(): void {
    this.closed = true
    for (const call of this.pushers) this.outcomes[call] = 'queue_closed'
    for (const call of this.readers) this.outcomes[call] = 'end'
    this.pushers = []
    this.readers = []
  }

  private match(): void {
    while (this.readers.length > 0 && this.items.length > 0) {
      this.outcomes[this.readers.shift() as number] = `item ${this.items.shift()}`
      const admitted = this.pushers.shift()
      if (admitted === undefined) continue
      this.items.push(admitted)
      this.outcomes[admitted] = 'in'
    }
  }
}

describe('BoundedQueue against a model', () => {
  it('behaves alike under every order of writes, reads, aborts and close', async () => {
    const run = fc.asyncProperty(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 40 }), async (capacity, steps) => {
      const queue = new BoundedQueue<number>(capacity)
      const model = new Model(capacity)
      const outcomes: (string | undefined)[] = []
      const aborters: AbortController[] = []
      for (const s of steps) {
        const call = aborters.length
        const failed = (e: unknown) => {
          outcomes[call] = e === 'aborted' ? 'aborted' : (e as { code: string }).code
        }
        if (s.op === 'abort') {
          if (aborters[s.index] === undefined) continue
          aborters[s.index]?.abort('aborted')
          model.abort(s.index)
        } else if (s.op === 'close') {
          queue.close()
          model.close()
        } else {
          const aborter = new AbortController()
          aborters.push(aborter)
          if (s.op === 'tryPush') {
            outcomes[call] = String(queue.tryPush(call))
            model.push(call, false)
          } else if (s.op === 'push') {
            queue.push(call, aborter.signal).then(() => {
              outcomes[call] = 'in'
            }, failed)
            model.push(call, true)
          } else {
            queue.shift(aborter.signal).then((item) => {
              outcomes[call] = item === undefined ? 'end' : `item ${item}`
            }, failed)
            model.shift(call)
          }
        }
        await turn()
        expect(outcomes).toEqual(model.outcomes)
        expect([queue.size, queue.closed]).toEqual([model.items.length, model.closed])
        expect(queue.size).toBeLessThanOrEqual(capacity)
      }
    })
    await fc.assert(run, { numRuns: 300 })
  })
})
