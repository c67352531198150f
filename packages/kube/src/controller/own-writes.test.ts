import { describe, expect, it } from 'vitest'
import { noteOwnWrite, withOwnWrites } from './own-writes.ts'

const at = (resourceVersion: string, uid = 'u') => ({ metadata: { name: 'a', namespace: 'b', uid, resourceVersion } })
const client = () => ({ patch: () => Promise.reject(new Error('nothing is asked of the server')) })

describe('own writes', () => {
  it('the cache is good enough while nothing was written, and once it has seen it', () => {
    const one = client()
    expect(withOwnWrites(one, at('5'))).toEqual(at('5'))
    noteOwnWrite(one, at('6'))
    expect(withOwnWrites(one, at('6'))).toEqual(at('6'))
    expect(withOwnWrites(one, at('5'))).toEqual(at('5')) // no longer noted
  })

  it('returns the own write while the cache is behind, for that object and client only', () => {
    const one = client()
    noteOwnWrite(one, at('10'))
    expect(withOwnWrites(one, at('9'))).toEqual(at('10'))
    expect(withOwnWrites(one, at('9', 'other'))).toEqual(at('9', 'other'))
    expect(withOwnWrites(client(), at('9'))).toEqual(at('9'))
    expect(withOwnWrites(one, at('12'))).toEqual(at('12'))
  })
})
