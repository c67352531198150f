import { describe, expect, it } from 'vitest'
import { NamedNamespaces } from './named-namespaces.ts'

describe('NamedNamespaces', () => {
  it('follows each namespace once, and leaves it with the last route that names it', () => {
    const named = new NamedNamespaces(3)
    expect(named.set('r1', new Set(['a', 'b']))).toEqual({ follow: ['a', 'b'], leave: [] })
    expect(named.set('r2', new Set(['b']))).toEqual({ follow: [], leave: [] })
    expect(named.set('r1', new Set(['a']))).toEqual({ follow: [], leave: [] })
    expect(named.set('r2', new Set())).toEqual({ follow: [], leave: ['b'] })
    expect(named.set('r1', new Set(['c']))).toEqual({ follow: ['c'], leave: ['a'] })
    expect(named.isExceeded).toBe(false)
  })

  it('gives the room of one that goes to one that waits', () => {
    const named = new NamedNamespaces(2)
    expect(named.set('hostile', new Set(['x', 'y', 'z']))).toEqual({ follow: ['x', 'y'], leave: [] })
    expect(named.set('honest', new Set(['a']))).toEqual({ follow: [], leave: [] })
    expect([named.isExceeded, named.isFollowed('a')]).toEqual([true, false])
    expect(named.set('hostile', new Set())).toEqual({ follow: ['a'], leave: ['x', 'y'] })
    expect([named.isExceeded, named.isFollowed('a')]).toEqual([false, true])
  })
})
