import { expect, it } from 'vitest'
import type { KubeObject } from '../objects/types.ts'
import { EventFeed, type ObjectEvent } from './event-feed.ts'

const object = (version: string, text: string, uid = '1') =>
  ({ metadata: { namespace: 'x', name: 'a', uid, resourceVersion: version, labels: { text } }, spec: { text } }) as unknown as KubeObject

function feedOf() {
  const events: ObjectEvent[] = []
  const feed = new EventFeed({
    versionsOnly: true,
    transform: ({ metadata, ...rest }) => ({ ...rest, metadata: { ...metadata, labels: {} } }),
    onError: (error) => {
      throw error
    },
  })
  feed.addHandler((event) => events.push(event))
  const taken = () => events.splice(0).map(({ type, object: each }) => [type, (each as { spec?: { text: string } }).spec?.text])
  return { feed, taken }
}

it('keeps versions alone where it is asked to, and tells the transformed objects all the same', () => {
  const { feed, taken } = feedOf()
  feed.upsert(object('1', 'first'))
  expect(taken()).toEqual([['ADDED', 'first']])
  expect(feed.store.list()).toEqual([{ metadata: { namespace: 'x', name: 'a', uid: '1', resourceVersion: '1' } }])
  feed.upsert(object('1', 'no news'))
  expect(taken()).toEqual([])
  feed.upsert(object('2', 'second'))
  expect(taken()).toEqual([['MODIFIED', 'second']])
  feed.upsert(object('3', 'another object', '2'))
  expect(taken()).toEqual([
    ['DELETED', undefined],
    ['ADDED', 'another object'],
  ])
  feed.remove({ namespace: 'x', name: 'a' }, object('4', 'last', '2'))
  expect(taken()).toEqual([['DELETED', 'last']])
  expect(feed.store.size).toBe(0)
})

it('tells an object again when its version cannot be trusted: it does not know what it said', () => {
  const { feed, taken } = feedOf()
  feed.upsert(object('1', 'first'))
  taken()
  feed.upsert(object('1', 'restored'), { trustVersions: false })
  expect(taken()).toEqual([['MODIFIED', 'restored']])
})
