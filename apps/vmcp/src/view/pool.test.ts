import { describe, expect, it } from 'vitest'
import { Pool } from './pool.ts'

describe('a pool', () => {
  it('makes a value once, and keeps it as long as it has users', () => {
    const pool = new Pool<string>((value) => value.length)
    let made = 0
    const take = (key: string) => pool.take(key, () => `${key}${++made}`)
    expect([take('a'), take('a'), take('bb')]).toEqual(['a1', 'a1', 'bb2'])
    expect([pool.count, pool.size]).toEqual([2, 5])
    pool.release('a')
    expect(take('a')).toBe('a1')
    pool.release('a')
    pool.release('a')
    expect([pool.count, pool.size]).toEqual([1, 3])
    pool.release('a')
    pool.release('unknown')
    expect(take('a')).toBe('a3')
    expect([pool.count, pool.size]).toEqual([2, 5])
  })

  it('counts what is made of a value later, as long as the value is there', () => {
    const pool = new Pool<string>((value) => value.length)
    const value = pool.take('a', () => 'text')
    pool.take('b', () => 'more')
    pool.grow(value, 100)
    pool.grow('unknown', 1_000)
    expect(pool.size).toBe(108)
    pool.release('a')
    pool.grow(value, 100)
    expect(pool.size).toBe(4)
  })

  it('keeps nothing of a value that could not be made', () => {
    const pool = new Pool<string>(() => 1)
    expect(() =>
      pool.take('a', () => {
        throw new Error('no')
      }),
    ).toThrow('no')
    expect(pool.count).toBe(0)
    expect(pool.take('a', () => 'yes')).toBe('yes')
  })
})
