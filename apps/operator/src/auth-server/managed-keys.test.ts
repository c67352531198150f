import { createPrivateKey } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { managedHmacFiles, managedKeyFiles, newKeyData, rotatedKeyData, untilRotation } from './managed-keys.ts'
import { capReplicas } from './replica-cap.ts'

const DAY = 24 * 3_600_000
const text = (data: Readonly<Record<string, string>>, file: string | undefined) => Buffer.from(data[file ?? ''] ?? '', 'base64')

describe('keys that the operator makes', () => {
  it('fill every slot with an ES256 key or a secret of at least 32 bytes, each its own', () => {
    const data = newKeyData()
    expect(Object.keys(data).toSorted()).toEqual([...managedKeyFiles, ...managedHmacFiles].toSorted())
    for (const file of managedKeyFiles)
      expect(createPrivateKey(text(data, file)).asymmetricKeyDetails).toMatchObject({ namedCurve: 'prime256v1' })
    for (const file of managedHmacFiles) expect(text(data, file).length).toBeGreaterThanOrEqual(32)
    expect(new Set(Object.values(data)).size).toBe(managedKeyFiles.length + managedHmacFiles.length)
  })

  it('rotate to the one that every replica knows already, and keep the one in use', () => {
    const before = newKeyData()
    const after = rotatedKeyData(before)
    expect(Object.keys(after).toSorted()).toEqual(Object.keys(before).toSorted())
    for (const files of [managedKeyFiles, managedHmacFiles]) {
      const [current = '', next = '', previous = ''] = files
      expect(after[current]).toBe(before[next])
      expect(Object.values(before)).not.toContain(after[next])
      expect(after[previous]).toBe(before[current])
    }
  })

  it('that somebody removed are made again, and the others stay good', () => {
    const before = newKeyData()
    const { 'hmac-3': _, ...some } = before
    const after = rotatedKeyData({ ...some, 'key-2.pem': '' })
    expect(after['key-0.pem']).toBe(before['key-1.pem'])
    expect(after['key-2.pem']).toBe(before['key-0.pem'])
    expect(after['hmac-0']).toBe(before['hmac-1'])
    for (const file of [...managedKeyFiles, ...managedHmacFiles]) expect(text(after, file).length).toBeGreaterThanOrEqual(32)
  })

  it('open what was sealed 400 days ago', () => {
    let data = newKeyData()
    const [first = ''] = managedHmacFiles
    const sealedWith = data[first]
    for (let day = 90; day <= 400; day += 90) data = rotatedKeyData(data)
    expect(Object.values(data)).toContain(sealedWith)
  })

  it('are replaced every 90 days, and at once when their age is unknown', () => {
    const now = Date.parse('2026-06-01T00:00:00Z')
    expect(untilRotation('2026-05-31T00:00:00.000Z', now)).toBe(89 * DAY)
    expect(untilRotation('2026-01-01T00:00:00.000Z', now)).toBe(0)
    expect(untilRotation(undefined, now)).toBe(0)
  })
})

describe('replicas of an authorization server', () => {
  const memory = { storage: { type: 'memory' } }
  it.each([
    ['several with memory', memory, { replicas: 3, scale: undefined }, 1, 1],
    ['an autoscaler with memory', memory, { replicas: undefined, scale: 2 }, 1, 1],
    ['one with memory', memory, { replicas: 1, scale: 3 }, 1, 0],
    ['several with Redis', { storage: { type: 'redis' } }, { replicas: 3, scale: undefined }, 3, 0],
    ['several without an authorization server', undefined, { replicas: 3, scale: undefined }, 3, 0],
  ])('%s', (_, login, facts, replicas, conditions) => {
    const capped = capReplicas(login, facts)
    expect([capped.replicas, capped.conditions.length]).toEqual([replicas, conditions])
    if (conditions === 1) expect(capped.conditions[0]).toMatchObject({ type: 'AuthServerReplicaCapped', status: 'True' })
  })
})
