import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it } from 'vitest'
import { EraMemory } from './era-memory.ts'

describe('EraMemory', () => {
  it('knows nothing until something was said', () => {
    const ledger = new EraMemory(new TestClock(), 'auto')
    expect(ledger.eras).toBeUndefined()
    expect([ledger.isRefused('legacy'), ledger.isRefused('modern')]).toEqual([false, false])
    expect(ledger.rejectionOf('modern', '2026-07-28')).toMatchObject({
      error: 'unsupported_protocol_version',
      httpStatus: 400,
      data: { requested: '2026-07-28', supported: ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] },
    })
    expect(ledger.rejectionOf('legacy', '2025-06-18')).toMatchObject({ data: { requested: '2025-06-18', supported: ['2026-07-28'] } })
  })

  it('lists what the server agreed to', () => {
    const ledger = new EraMemory(new TestClock(), 'auto')
    ledger.spoke('legacy', { version: '2025-03-26' })
    expect(ledger.eras).toEqual(['legacy'])
    expect(ledger.rejectionOf('modern', '2026-07-28').data).toMatchObject({ supported: ['2024-11-05', '2025-03-26'] })
    expect(ledger.served(undefined)).toEqual(['2024-11-05', '2025-03-26'])
    ledger.spoke('modern')
    expect(ledger.eras).toEqual(['legacy', 'modern'])
    expect(ledger.served(['2025-11-25', '2026-07-28'])).toEqual(['2025-11-25', '2026-07-28'])
  })

  it('speaks one at a time where there is one process', () => {
    const ledger = new EraMemory(new TestClock(), 'auto')
    ledger.spoke('modern', { isOnly: true })
    ledger.spoke('legacy', { version: '2025-11-25', isOnly: true })
    expect(ledger.eras).toEqual(['legacy'])
  })

  it('lets a refusal expire, as a server may be upgraded', async () => {
    const clock = new TestClock()
    const ledger = new EraMemory(clock, 'auto', () => 0)
    ledger.refused('modern')
    expect(ledger.isRefused('modern')).toBe(true)
    await clock.advance(599_999)
    expect(ledger.isRefused('modern')).toBe(true)
    await clock.advance(1)
    expect(ledger.isRefused('modern')).toBe(false)
  })

  it('does what the configuration says, whatever the server does', () => {
    const ledger = new EraMemory(new TestClock(), 'modern')
    ledger.spoke('legacy', { version: '2025-11-25' })
    expect(ledger.eras).toEqual(['modern'])
    expect(ledger.isRefused('legacy')).toBe(true)
    expect(ledger.served(['2025-11-25', '2026-07-28'])).toEqual(['2026-07-28'])
  })
})
