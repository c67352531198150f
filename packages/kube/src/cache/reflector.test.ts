import { TestClock } from '@thv/kernel/clock'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { KubeApiError } from '../client/kube-api-error.ts'
import { FakeApi, type Thing, things, unreachable } from '../testing/fake-api.ts'
import { replayOf, versionsOf } from '../testing/replay.ts'
import { Reflector, type ReflectorOptions } from './reflector.ts'

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

function start(api: FakeApi, options: Partial<ReflectorOptions<Thing>> = {}) {
  const clock = new TestClock()
  const errors: { error: unknown; phase: string }[] = []
  const reflector = new Reflector<Thing>({
    client: api,
    type: things,
    clock,
    safetyRelistMs: 0,
    random: () => 0,
    onError: (error, phase) => errors.push({ error, phase }),
    ...options,
  })
  const replay = replayOf(reflector)
  const stop = new AbortController()
  const running = reflector.run(stop.signal)
  const end = async () => {
    stop.abort()
    await running
  }
  cleanups.push(end)
  const settle = () => clock.advance(0)
  const expectEqual = () => {
    expect(replay.faults).toEqual([])
    expect(versionsOf(reflector.store.list())).toEqual(versionsOf(api.objects.values()))
    expect(versionsOf(replay.objects.values())).toEqual(versionsOf(api.objects.values()))
  }
  return { reflector, clock, errors, replay, end, settle, expectEqual }
}

const typesOf = (events: { type: string; object: Thing }[]) => events.map(({ type, object }) => `${type} ${object.metadata.name}`)

describe('list and watch', () => {
  test('lists in pages, then watches from the version of the list with bookmarks', async () => {
    const api = new FakeApi()
    for (let n = 0; n < 5; n++) api.put(`t${n}`, n)
    const { reflector, settle, expectEqual } = start(api, { pageSize: 2, namespace: 'ns', labelSelector: { matchLabels: { a: 'b' } } })
    expect(reflector.hasSynced).toBe(false)
    await settle()
    expect(reflector.hasSynced).toBe(true)
    expect(api.listCalls()).toHaveLength(1)
    expect(api.listCalls()[0]).toMatchObject({ limit: 2, namespace: 'ns', labelSelector: 'a=b' })
    expect(api.watchCalls()[0]).toMatchObject({ resourceVersion: '105', allowBookmarks: true, namespace: 'ns', labelSelector: 'a=b' })
    expectEqual()
    expect(reflector.stats).toMatchObject({ lists: 1, watches: 1, relists: 0, errors: 0, resourceVersion: '105' })
  })

  test('says that a list failed, and that one was answered again, once each', async () => {
    const api = new FakeApi()
    const refused = new KubeApiError({ call: { verb: 'list', target: 'things' }, status: 403, body: { reason: 'Forbidden' } })
    api.listErrors.push(refused, refused)
    const { reflector, clock, settle, end } = start(api, { backoff: { baseMs: 100, maxMs: 100, jitter: 0 } })
    const seen: unknown[] = []
    const leave = reflector.addListingHandler(() => void seen.push([reflector.hasSynced, reflector.listFailure]))
    await settle()
    await clock.advance(100)
    expect(seen).toEqual([[false, refused]])
    await clock.advance(100)
    expect(seen).toEqual([
      [false, refused],
      [true, undefined],
    ])
    // Later the list is how it finds out whether the server was restored from a backup.
    api.listErrors.push(refused)
    api.watchErrors.push(unreachable())
    api.endWatches()
    await clock.advance(0)
    await clock.advance(100)
    expect([reflector.hasSynced, reflector.listFailure]).toEqual([true, refused])
    await clock.advance(100)
    expect(reflector.listFailure).toBeUndefined()
    expect(seen).toHaveLength(4)
    leave()
    await end()
  })

  test('says that a list is refused also after one that was not answered at all', async () => {
    const api = new FakeApi()
    const refused = new KubeApiError({ call: { verb: 'list', target: 'things' }, status: 403, body: { reason: 'Forbidden' } })
    const away = unreachable()
    api.listErrors.push(away, refused, refused)
    const { reflector, clock, settle } = start(api, { backoff: { baseMs: 100, maxMs: 100, jitter: 0 } })
    const seen: unknown[] = []
    reflector.addListingHandler(() => void seen.push(reflector.listFailure))
    await settle()
    for (let i = 0; i < 3; i++) await clock.advance(100)
    expect(seen).toEqual([away, refused, undefined])
  })

  test('passes changes on in order, with the state before', async () => {
    const api = new FakeApi()
    const { replay, settle, expectEqual, clock, reflector } = start(api)
    await settle()
    api.put('a', 1)
    api.put('a', 2)
    api.put('b', 1)
    api.drop('a')
    await settle()
    expect(typesOf(replay.events)).toEqual(['ADDED a', 'MODIFIED a', 'ADDED b', 'DELETED a'])
    expect(replay.events[1]?.old?.spec?.value).toBe(1)
    expect(replay.events[3]?.old?.spec?.value).toBe(2)
    expect(reflector.stats).toMatchObject({ events: 4, lastEventAt: clock.now() })
    expectEqual()
  })

  test('a normal end of the watch leads to another one at once, from the last version, without a list', async () => {
    const api = new FakeApi()
    const { reflector, clock, settle, expectEqual } = start(api)
    await settle()
    api.put('a', 1)
    await settle()
    await clock.advance(2_000)
    api.endWatches()
    api.put('b', 1)
    await settle()
    expect(api.watchCalls().map(({ resourceVersion }) => resourceVersion)).toEqual(['100', '101'])
    expect(reflector.stats).toMatchObject({ lists: 1, watches: 2, errors: 0 })
    expectEqual()
  })

  test('a bookmark moves the version from which the next watch resumes', async () => {
    const api = new FakeApi()
    const { settle, replay } = start(api)
    await settle()
    api.version = 500
    api.bookmark()
    await settle()
    api.endWatches()
    await settle()
    expect(api.watchCalls().at(-1)?.resourceVersion).toBe('500')
    expect(replay.events).toEqual([])
  })

  test('watches that end at once, again and again, are slowed down', async () => {
    const api = new FakeApi()
    api.endWatchesAtOnce = true
    const { clock, settle, reflector } = start(api, { backoff: { baseMs: 100, maxMs: 1_000, jitter: 0 } })
    await settle()
    expect(reflector.stats.watches).toBe(2)
    await clock.advance(100)
    expect(reflector.stats.watches).toBe(3)
    await clock.advance(100)
    expect(reflector.stats.watches).toBe(3)
    await clock.advance(100)
    expect(reflector.stats.watches).toBe(4)
    api.endWatchesAtOnce = false
    await clock.advance(10_000)
    expect(reflector.stats.watches).toBe(5)
    expect(reflector.stats.lists).toBe(1)
  })

  test('keeps what the transform keeps; managedFields are dropped by default', async () => {
    const api = new FakeApi()
    api.put('a', 1, { managedFields: [{ large: true }] })
    const plain = start(api)
    const cut = start(api, {
      transform: ({ metadata }) => ({ metadata: { name: metadata.name, namespace: 'ns', uid: 'u', resourceVersion: '1' } }),
    })
    await plain.settle()
    await cut.settle()
    expect(plain.reflector.store.get({ namespace: 'ns', name: 'a' })?.metadata.managedFields).toBeUndefined()
    expect(plain.reflector.store.get({ namespace: 'ns', name: 'a' })?.spec?.value).toBe(1)
    expect(cut.reflector.store.get({ namespace: 'ns', name: 'a' })?.spec).toBeUndefined()
  })
})

describe('failures', () => {
  test('410 leads to a list whose differences become events: deleted, added, changed, replaced', async () => {
    const api = new FakeApi()
    for (const name of ['gone', 'changed', 'same', 'replaced']) api.put(name, 1)
    const { reflector, clock, replay, settle, expectEqual, errors } = start(api)
    await settle()
    await clock.advance(2_000)
    replay.events.length = 0
    api.stallWatches()
    api.drop('gone')
    api.put('changed', 2)
    api.put('new', 1)
    api.drop('replaced')
    api.put('replaced', 1)
    api.compact()
    api.endWatches()
    await settle()
    expect(typesOf(replay.events).sort()).toEqual(['ADDED new', 'ADDED replaced', 'DELETED gone', 'DELETED replaced', 'MODIFIED changed'])
    const own = typesOf(replay.events).filter((text) => text.endsWith('replaced'))
    expect(own).toEqual(['DELETED replaced', 'ADDED replaced'])
    expect(reflector.stats).toMatchObject({ expired: 1, relists: 1, lists: 2, errors: 0, missed: 0 })
    expect(errors).toEqual([])
    expectEqual()
  })

  test('another uid under the same name in the stream is a deletion and an addition', async () => {
    const api = new FakeApi()
    const first = api.put('a', 1)
    const { replay, settle } = start(api)
    await settle()
    const metadata = { ...first.metadata, uid: 'another', resourceVersion: '200' }
    api.sendRaw({ type: 'MODIFIED', object: { ...first, metadata } })
    await settle()
    expect(typesOf(replay.events)).toEqual(['ADDED a', 'DELETED a', 'ADDED a'])
    expect(replay.events[1]?.object.metadata.uid).toBe(first.metadata.uid)
  })

  test('the same version again is no news', async () => {
    const api = new FakeApi()
    const first = api.put('a', 1)
    const { replay, settle } = start(api)
    await settle()
    api.sendRaw({ type: 'MODIFIED', object: first })
    await settle()
    expect(typesOf(replay.events)).toEqual(['ADDED a'])
  })

  test('endless 410 are slowed down', async () => {
    const api = new FakeApi()
    api.watchErrors.push(...Array.from({ length: 4 }, () => new KubeApiError(gone)))
    const { clock, settle, reflector } = start(api, { backoff: { baseMs: 100, maxMs: 1_000, jitter: 0 } })
    await settle()
    expect(reflector.stats.lists).toBe(2)
    await clock.advance(99)
    expect(reflector.stats.lists).toBe(2)
    await clock.advance(1)
    expect(reflector.stats.lists).toBe(3)
    await clock.advance(199)
    expect(reflector.stats.lists).toBe(3)
    await clock.advance(10_000)
    expect(reflector.stats).toMatchObject({ expired: 4, lists: 5 })
    expect(api.openWatches).toBe(1)
  })

  test('errors of the list are reported and retried without limit, with growing delays that a success resets', async () => {
    const api = new FakeApi()
    api.listErrors.push(...Array.from({ length: 40 }, unreachable))
    const { clock, reflector, errors, settle, expectEqual } = start(api, { backoff: { baseMs: 100, maxMs: 400, jitter: 0 } })
    await settle()
    expect(errors).toHaveLength(1)
    await clock.advance(100)
    expect(errors).toHaveLength(2)
    await clock.advance(199)
    expect(errors).toHaveLength(2)
    await clock.advance(1)
    expect(errors).toHaveLength(3)
    api.put('a', 1)
    await clock.advance(40 * 400)
    expect(errors).toHaveLength(40)
    expect(errors.every(({ phase }) => phase === 'list')).toBe(true)
    expect(reflector.hasSynced).toBe(true)
    expectEqual()
    api.watchErrors.push(unreachable())
    api.endWatches(unreachable())
    await clock.advance(100)
    await clock.advance(200)
    expect(api.openWatches).toBe(1)
  })

  test('after an error of the watch it asks for the current version, then resumes without a list of everything', async () => {
    const api = new FakeApi()
    for (let n = 0; n < 3; n++) api.put(`t${n}`, n)
    const { clock, reflector, errors, settle, expectEqual } = start(api)
    await settle()
    api.endWatches(unreachable())
    api.put('later', 1)
    await clock.advance(1_000)
    expect(api.listCalls().map(({ limit }) => limit)).toEqual([500, 1])
    expect(reflector.stats).toMatchObject({ lists: 1, watches: 2, errors: 1, relists: 0 })
    expect(errors[0]?.phase).toBe('watch')
    expectEqual()
  })

  test('a version from which every watch breaks is given up: a list gets past it', async () => {
    const api = new FakeApi()
    api.put('a', 1)
    api.poisoned.set(101, new KubeApiError({ ...gone, status: 500 }))
    const { clock, reflector, errors, expectEqual } = start(api)
    await clock.advance(600)
    api.put('a', 2)
    await clock.advance(20_000)
    expect(reflector.stats).toMatchObject({ abandoned: 1, relists: 1, expired: 0 })
    expect(errors).toHaveLength(3)
    expectEqual()
    api.put('b', 1)
    await clock.advance(0)
    expectEqual()
  })

  test('where watching never works, lists with pauses keep the cache up to date', async () => {
    const api = new FakeApi()
    api.watchErrors.push(...Array.from({ length: 10_000 }, () => new KubeApiError({ ...gone, status: 403 })))
    const { clock, reflector, expectEqual } = start(api)
    await clock.advance(600_000)
    api.put('a', 1)
    await clock.advance(91_000)
    expectEqual()
    expect(reflector.stats.lists).toBeLessThan(15)
  })

  test('an outage, however long, costs no list of everything', async () => {
    const api = new FakeApi()
    api.put('a', 1)
    const { clock, reflector, expectEqual } = start(api)
    await clock.advance(20_000)
    api.listErrors.push(...Array.from({ length: 20 }, unreachable))
    api.endWatches(unreachable())
    api.put('a', 2)
    await clock.advance(900_000)
    expectEqual()
    expect(reflector.stats).toMatchObject({ relists: 0, abandoned: 0, errors: 21 })
  })

  test('idle watches that something between breaks now and then cost no lists, and no growing delays', async () => {
    const api = new FakeApi()
    const { clock, reflector } = start(api, { backoff: { baseMs: 100, maxMs: 60_000, jitter: 0 } })
    for (let n = 0; n < 10; n++) {
      await clock.advance(30_000)
      api.endWatches(unreachable())
      await clock.advance(100)
      expect(api.openWatches).toBe(1)
    }
    expect(reflector.stats).toMatchObject({ lists: 1, abandoned: 0, watches: 11 })
  })

  test('versions that went back lead to a list', async () => {
    const api = new FakeApi()
    api.put('kept', 1)
    const backup = [...api.objects.values()]
    const { clock, reflector, settle, expectEqual } = start(api)
    await settle()
    api.put('lost', 1)
    api.put('kept', 2)
    await settle()
    api.endWatches(unreachable())
    api.restore(backup, 101)
    await clock.advance(1_000)
    expect(reflector.stats).toMatchObject({ rewinds: 1, relists: 1, resourceVersion: '101' })
    expectEqual()
    api.put('next', 1)
    await settle()
    expectEqual()
  })

  test('a version that the restored server gave out again is not taken for the old one', async () => {
    const api = new FakeApi()
    api.put('a', 1)
    const backup = [...api.objects.values()]
    const { clock, reflector, settle } = start(api)
    await settle()
    api.put('a', 2)
    api.put('b', 1)
    await settle()
    api.endWatches(unreachable())
    api.restore(backup, 101)
    api.put('a', 3)
    await clock.advance(1_000)
    expect(reflector.store.get({ namespace: 'ns', name: 'a' })?.metadata.resourceVersion).toBe('102')
    expect(reflector.store.get({ namespace: 'ns', name: 'a' })?.spec?.value).toBe(3)
    expect(reflector.store.size).toBe(1)
  })

  test('an event of an older version in the stream leads to a list', async () => {
    const api = new FakeApi()
    const first = api.put('a', 1)
    api.put('a', 2)
    const { reflector, settle, expectEqual } = start(api)
    await settle()
    api.sendRaw({ type: 'MODIFIED', object: first })
    await settle()
    expect(reflector.stats).toMatchObject({ rewinds: 1, relists: 1 })
    expectEqual()
  })

  test('waits as long as the server asks', async () => {
    const api = new FakeApi()
    api.listErrors.push(new KubeApiError({ ...gone, status: 429, retryAfterSeconds: 7 }))
    const { clock, reflector, settle } = start(api, { backoff: { baseMs: 100, maxMs: 400 } })
    await settle()
    await clock.advance(6_999)
    expect(reflector.hasSynced).toBe(false)
    await clock.advance(1)
    expect(reflector.hasSynced).toBe(true)
  })

  test('when a continue token expires the next list goes without pages', async () => {
    const api = new FakeApi()
    for (let n = 0; n < 4; n++) api.put(`t${n}`, n)
    let spoilt = false
    api.beforePage = (page) => {
      if (page !== 1 || spoilt) return
      spoilt = true
      api.drop('t0')
      api.compact()
    }
    const { reflector, settle, expectEqual } = start(api, { pageSize: 2 })
    await settle()
    expect(api.listCalls().map(({ limit }) => limit)).toEqual([2, undefined])
    expect(reflector.stats).toMatchObject({ lists: 1, expired: 1, errors: 0 })
    expectEqual()
  })

  test('changes during a slow list are not lost', async () => {
    const api = new FakeApi()
    for (let n = 0; n < 6; n++) api.put(`t${n}`, n)
    const { clock, expectEqual, reflector } = start(api, {
      pageSize: 2,
      pageTimeoutMs: 1_234,
    })
    api.beforePage = async (page) => {
      await clock.sleep(60_000)
      api.put(`t${page}`, 100 + page)
      api.drop(`t${5 - page}`)
    }
    await clock.advance(59_000)
    expect(reflector.hasSynced).toBe(false)
    await clock.advance(300_000)
    expect(api.listCalls()[0]?.timeoutMs).toBe(1_234)
    expect(reflector.stats).toMatchObject({ lists: 1, errors: 0 })
    expectEqual()
  })

  test('a list that breaks half-way deletes nothing', async () => {
    const api = new FakeApi()
    for (let n = 0; n < 4; n++) api.put(`t${n}`, n)
    const { clock, reflector, settle, replay, expectEqual } = start(api, { pageSize: 2 })
    await settle()
    api.beforePage = (page) => {
      if (page === 1) throw unreachable()
    }
    api.stallWatches()
    api.drop('t3')
    api.compact()
    api.endWatches()
    await settle()
    expect(reflector.store.size).toBe(4)
    expect(replay.events.filter(({ type }) => type === 'DELETED')).toEqual([])
    api.beforePage = () => {}
    await clock.advance(60_000)
    expectEqual()
  })
})

const gone = { call: { verb: 'watch', target: 'things' }, status: 410, body: undefined }

describe('handlers', () => {
  test('an exception is reported and stops neither the loop nor other handlers', async () => {
    const api = new FakeApi()
    const { reflector, errors, settle, replay } = start(api)
    reflector.addHandler(() => {
      throw new Error('bad handler')
    })
    reflector.addHandler(async () => {
      throw new Error('bad async handler')
    })
    const late: string[] = []
    reflector.addHandler(({ object }) => late.push(object.metadata.name))
    await settle()
    api.put('a', 1)
    api.put('b', 1)
    await settle()
    expect(late).toEqual(['a', 'b'])
    expect(replay.events).toHaveLength(2)
    expect(errors.map(({ error, phase }) => `${phase}: ${(error as Error).message}`).sort()).toEqual([
      'handler: bad async handler',
      'handler: bad async handler',
      'handler: bad handler',
      'handler: bad handler',
    ])
    expect(reflector.stats).toMatchObject({ lists: 1, watches: 1 })
  })

  test('an onError that throws does not stop the loop', async () => {
    const api = new FakeApi()
    api.listErrors.push(unreachable())
    const { clock, reflector } = start(api, {
      onError: () => {
        throw new Error('cannot report')
      },
    })
    await clock.advance(60_000)
    expect(reflector.hasSynced).toBe(true)
  })

  test('a late handler receives all present objects once, also when it is added from within a handler', async () => {
    const api = new FakeApi()
    api.put('a', 1)
    const { reflector, settle } = start(api)
    await settle()
    const late = replayOf(reflector)
    expect(typesOf(late.events)).toEqual(['ADDED a'])
    let inner: ReturnType<typeof replayOf<Thing>> | undefined
    reflector.addHandler(({ type }) => {
      if (type === 'MODIFIED') inner ??= replayOf(reflector)
    })
    api.put('a', 2)
    await settle()
    expect(late.faults).toEqual([])
    expect(typesOf(inner?.events ?? [])).toEqual(['ADDED a'])
    expect(inner?.faults).toEqual([])
    expect(inner?.events[0]?.object.spec?.value).toBe(2)
  })

  test('a removed handler receives nothing more, even in the middle of an event', async () => {
    const api = new FakeApi()
    const { reflector, settle } = start(api)
    await settle()
    const seen: string[] = []
    reflector.addHandler(() => leave())
    const leave = reflector.addHandler(({ object }) => seen.push(object.metadata.name))
    api.put('a', 1)
    await settle()
    expect(seen).toEqual([])
  })

  test('hasSynced becomes true only after the handlers know everything', async () => {
    const api = new FakeApi()
    api.put('a', 1)
    const { reflector, settle, replay } = start(api)
    const syncedWith: number[] = []
    void reflector.waitForSync().then(() => syncedWith.push(replay.events.length))
    await settle()
    expect(syncedWith).toEqual([1])
  })
})

describe('safety check', () => {
  const options = { safetyRelistMs: 60_000, safetyGraceMs: 1_000 }

  test('finds, counts and repairs what the watch did not bring, and opens another watch', async () => {
    const api = new FakeApi()
    for (const name of ['deleted', 'changed', 'same']) api.put(name, 1)
    const { clock, reflector, settle, expectEqual } = start(api, options)
    await settle()
    api.lose = () => true
    api.drop('deleted')
    api.put('changed', 2)
    api.put('added', 1)
    api.lose = () => false
    api.put('seen', 1)
    await settle()
    expect(reflector.store.size).toBe(4)
    await clock.advance(60_000)
    expect(reflector.stats.missed).toBe(0)
    await clock.advance(1_000)
    expect(reflector.stats).toMatchObject({ missed: 3, safetyChecks: 1, relists: 0, watches: 2 })
    expectEqual()
    await clock.advance(61_000)
    expect(reflector.stats).toMatchObject({ missed: 3, safetyChecks: 2, watches: 2 })
    api.put('after', 1)
    await settle()
    expectEqual()
  })

  test('a stalled watch is replaced; later changes arrive', async () => {
    const api = new FakeApi()
    const { clock, reflector, settle, expectEqual } = start(api, options)
    await settle()
    api.stallWatches()
    api.put('a', 1)
    await clock.advance(61_000)
    expectEqual()
    api.put('b', 1)
    await settle()
    expectEqual()
    expect(reflector.stats.missed).toBe(1)
  })

  test('events that are only late are not counted', async () => {
    const api = new FakeApi()
    for (let n = 0; n < 4; n++) api.put(`t${n}`, n)
    const { clock, reflector, settle, expectEqual } = start(api, { ...options, pageSize: 2 })
    await settle()
    api.beforePage = async (page) => {
      if (page === 0) {
        api.put('t0', 50) // before the snapshot, at the cache before the comparison
        return
      }
      api.drop('t3') // after the snapshot: listed, and rightly gone
      api.drop('t1')
      api.put('t1', 7) // another one
      api.put('t2', 8)
      api.put('new', 9)
      await clock.sleep(10)
    }
    await clock.advance(60_000)
    await clock.advance(5_000)
    expect(reflector.stats).toMatchObject({ safetyChecks: 1, missed: 0, watches: 1 })
    expectEqual()
  })

  test('an event within the time of grace is not counted', async () => {
    const api = new FakeApi()
    const { clock, reflector, settle, expectEqual } = start(api, options)
    await settle()
    const held: Parameters<FakeApi['sendRaw']>[0][] = []
    api.lose = (event) => {
      held.push(event)
      return true
    }
    api.put('a', 1)
    api.put('b', 1)
    api.drop('b')
    await clock.advance(60_500)
    for (const event of held) api.sendRaw(event)
    await clock.advance(1_000)
    expect(reflector.stats).toMatchObject({ safetyChecks: 1, missed: 0 })
    expectEqual()
  })

  test('sees that the versions went back', async () => {
    const api = new FakeApi()
    api.put('a', 1)
    const backup = [...api.objects.values()]
    const { clock, reflector, settle, expectEqual } = start(api, options)
    await settle()
    api.put('a', 2)
    await settle()
    api.restore(backup, 101)
    await clock.advance(62_000)
    expect(reflector.stats).toMatchObject({ rewinds: 1, relists: 1 })
    expectEqual()
  })

  test('a list of everything meanwhile makes the check moot', async () => {
    const api = new FakeApi()
    for (const name of ['kept', 'gone']) api.put(name, 1)
    const { clock, reflector, settle, replay, expectEqual } = start(api, options)
    await settle()
    let checking = false
    api.beforePage = async () => {
      if (checking) return
      checking = true
      api.lose = () => true
      api.put('other', 1) // a suspect: the check waits for its time of grace
    }
    await clock.advance(60_100)
    api.drop('other')
    api.drop('gone')
    api.compact()
    api.endWatches()
    await clock.advance(5_000)
    expect(reflector.stats).toMatchObject({ safetyChecks: 1, expired: 1, relists: 1, missed: 0 })
    expect(replay.events.filter(({ object }) => object.metadata.name === 'gone').map(({ type }) => type)).toEqual(['ADDED', 'DELETED'])
    expectEqual()
  })

  test('buffered events of a replaced watch are ignored', async () => {
    const api = new FakeApi()
    const { clock, reflector, settle, expectEqual } = start(api, options)
    await settle()
    api.lose = () => true
    const old = api.put('a', 1)
    api.put('a', 2)
    api.lose = () => false
    const watchBefore = reflector.stats.watches
    reflector.addHandler(() => api.sendRaw({ type: 'ADDED', object: old })) // arrives while the cache is repaired
    await clock.advance(61_000)
    expect(reflector.stats).toMatchObject({ missed: 1, rewinds: 0, relists: 0, watches: watchBefore + 1 })
    expectEqual()
  })

  test('an error is reported and the next check comes', async () => {
    const api = new FakeApi()
    const { clock, reflector, settle, errors } = start(api, options)
    await settle()
    api.listErrors.push(unreachable())
    await clock.advance(120_000)
    expect(errors.map(({ phase }) => phase)).toEqual(['safety'])
    expect(reflector.stats).toMatchObject({ safetyChecks: 1, watches: 1 })
  })

  test('0 turns it off', async () => {
    const api = new FakeApi()
    const { clock } = start(api, { safetyRelistMs: 0 })
    await clock.advance(10 * 60 * 60_000)
    expect(api.listCalls()).toHaveLength(1)
  })
})

describe('life', () => {
  test('stops in each state: listing, watching, waiting to retry, checking', async () => {
    for (const state of ['list', 'watch', 'retry', 'safety'] as const) {
      const api = new FakeApi()
      const { clock, end, settle } = start(api, { safetyRelistMs: 1_000 })
      if (state === 'list') api.beforePage = (_page, { signal }) => clock.sleep(1e9, signal)
      if (state === 'retry') api.listErrors.push(unreachable())
      await settle()
      if (state === 'safety') {
        api.beforePage = (_page, { signal }) => clock.sleep(1e9, signal)
        await clock.advance(1_500)
      }
      await end()
      expect(api.openWatches, state).toBe(0)
      expect(clock.pending, state).toBe(0)
    }
  })

  test('stops also when the last answer came with the abort', async () => {
    const api = new FakeApi()
    const { clock, settle, end } = start(api)
    await settle()
    let ending: Promise<void> | undefined
    api.beforePage = () => {
      ending = end() // the answer to the question for the current version still comes
    }
    api.endWatches(unreachable())
    await clock.advance(1_000)
    expect(ending).toBeDefined()
    await ending
    expect(api.openWatches).toBe(0)
  })

  test('waitForSync rejects when its signal aborts, or when the reflector stops first', async () => {
    const api = new FakeApi()
    api.listErrors.push(unreachable())
    const { reflector, end, settle } = start(api)
    await settle()
    const impatient = new AbortController()
    const waiting = reflector.waitForSync(impatient.signal)
    impatient.abort(new Error('tired'))
    await expect(waiting).rejects.toThrow('tired')
    const patient = reflector.waitForSync()
    patient.catch(() => {})
    await end()
    await expect(patient).rejects.toMatchObject({ code: 'aborted' })
  })

  test('cannot be started twice', async () => {
    const { reflector } = start(new FakeApi())
    await expect(reflector.run(new AbortController().signal)).rejects.toThrow('started twice')
  })
})

describe('property: whatever happens, the cache and the replay end equal to the server', () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('put' as const), name: fc.nat(5), value: fc.nat(9) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('drop' as const), name: fc.nat(5) }) },
    fc.record({ do: fc.constantFrom('end', 'break', 'compact', 'stall', 'bookmark', 'failList', 'failWatch', 'midList', 'lose') }),
    { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(0, 10, 600, 5_000, 40_000) }) },
  )

  test('random changes and faults', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const api = new FakeApi()
        const { clock, end, expectEqual } = start(api, { pageSize: 2, safetyRelistMs: 60_000, safetyGraceMs: 500, random: () => 0.3 })
        for (const action of steps) {
          if (action.do === 'put' && 'value' in action) api.put(`t${action.name}`, action.value)
          else if (action.do === 'drop' && 'name' in action) api.drop(`t${action.name}`)
          else if (action.do === 'wait' && 'ms' in action) await clock.advance(action.ms)
          else if (action.do === 'end') api.endWatches()
          else if (action.do === 'break') api.endWatches(unreachable())
          else if (action.do === 'compact') api.compact()
          else if (action.do === 'stall') api.stallWatches()
          else if (action.do === 'bookmark') api.bookmark()
          else if (action.do === 'failList') api.listErrors.push(unreachable())
          else if (action.do === 'failWatch') api.watchErrors.push(unreachable())
          else if (action.do === 'lose')
            api.lose = (event) => event.object.metadata.name === 't1' && Number(event.object.spec?.value) % 2 === 0
          else if (action.do === 'midList') {
            api.beforePage = (page) => {
              if (page === 0) return
              api.beforePage = () => {}
              api.put('t0', 77)
              api.drop('t1')
              api.compact()
            }
          }
        }
        api.lose = () => false
        await clock.advance(300_000)
        expectEqual()
        await end()
      }),
      { numRuns: 300 },
    )
  })
})
