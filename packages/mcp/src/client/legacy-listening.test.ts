import { describe, expect, it } from 'vitest'
import { NOTIFICATIONS } from '../methods.ts'
import { isWanted } from './legacy-listening.ts'

describe('an update of a resource', () => {
  it.each<[string, string, boolean]>([
    ['file:///a', 'file:///a', true],
    ['file:///a', 'file:///a/b', true],
    ['file:///a/', 'file:///a/b', true],
    ['file:///a', 'file:///a#part', true],
    ['file:///a', 'file:///a?page=2', true],
    ['file:///a', 'file:///ab', false],
    ['file:///a', 'file:///', false],
    ['file:///a/b', 'file:///a', false],
  ])('subscribed to %s, changed %s: %s', (subscribed, uri, expected) => {
    const notification = { jsonrpc: '2.0', method: NOTIFICATIONS.resourcesUpdated, params: { uri } } as const
    expect(isWanted(notification, { resourceSubscriptions: [subscribed] })).toBe(expected)
    expect(isWanted(notification, {})).toBe(false)
  })
})
