import { TestClock } from '@thv/kernel/clock'
import { createMemorySessionStore } from './memory-session-store.ts'
import { describeSessionStore } from './testing/session-store-contract.ts'

describeSessionStore('memory', async () => {
  const clock = new TestClock()
  return { store: createMemorySessionStore({ clock }), passed: (ms) => clock.advance(ms) }
})
