import type { McpResource } from '@thv/catalog/discover/objects/mcp-resource'
import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../engine/testing/engine-fixture.ts'
import { Introspection } from './introspection.ts'

const HOUR = 3_600_000

function resource(name: string, more: Partial<McpResource> = {}): McpResource {
  const askable = { url: `http://${name}.example/mcp`, generation: 1 }
  return { kind: 'MCPServer', namespace: 'x', name, annotations: {}, remoteType: 'streamable-http', askable, ...more }
}

/** Each question waits for its answer. */
function world() {
  const clock = new TestClock()
  const changed: string[] = []
  const asked: { readonly url: string; readonly answer: (tools: readonly string[] | Error) => void }[] = []
  const introspection = new Introspection({
    clock,
    random: () => 0.5,
    log: silentLog,
    onChange: ({ name }) => changed.push(name),
    ask: (url) =>
      new Promise((resolve, reject) => {
        asked.push({ url, answer: (tools) => (tools instanceof Error ? reject(tools) : resolve(tools)) })
      }),
  })
  return { clock, changed, asked, introspection }
}

const settle = () => new Promise((resolve) => setImmediate(resolve))

describe('Introspection', () => {
  it('asks at most four servers at a time, each once', async () => {
    const { introspection, asked, changed } = world()
    const all = ['a', 'b', 'c', 'd', 'e'].map((name) => resource(name))
    introspection.want(all)
    introspection.want(all)
    expect(asked).toHaveLength(4)
    for (const { answer } of asked) answer(['t'])
    await settle()
    expect(asked.map(({ url }) => url)).toEqual(all.map(({ askable }) => askable?.url))
    expect(changed).toEqual(['a', 'b', 'c', 'd'])
  })

  it('asks again when the generation changes and after an hour, and reports only news', async () => {
    const { introspection, asked, changed, clock } = world()
    introspection.want([resource('a')])
    asked[0]?.answer(['one', 'one', 'not a name', 'x'.repeat(129)])
    await settle()
    expect(introspection.toolsOf(resource('a'))).toEqual(['one'])
    introspection.want([resource('a')])
    expect(asked).toHaveLength(1)
    introspection.want([resource('a', { askable: { url: 'http://a.example/mcp', generation: 2 } })])
    asked[1]?.answer(['one'])
    await settle()
    await clock.advance(HOUR)
    expect(asked).toHaveLength(3)
    asked[2]?.answer(['two'])
    await settle()
    expect(introspection.toolsOf(resource('a'))).toEqual(['two'])
    expect(changed).toEqual(['a', 'a'])
  })

  it('keeps what it knows when a server fails or cannot be asked, and tries again later', async () => {
    const { introspection, asked, changed, clock } = world()
    introspection.want([resource('a')])
    asked[0]?.answer(['one'])
    await settle()
    await clock.advance(HOUR)
    asked[1]?.answer(new Error('away'))
    await settle()
    const { askable: _, ...stopped } = resource('a')
    introspection.want([stopped])
    expect(introspection.toolsOf(stopped)).toEqual(['one'])
    await clock.advance(60_000)
    expect(asked.length).toBeGreaterThan(2)
    expect(changed).toEqual(['a'])
  })

  it('forgets a server that is no longer exported', async () => {
    const { introspection, asked, changed } = world()
    introspection.want([resource('a')])
    introspection.want([])
    asked[0]?.answer(['one'])
    await settle()
    expect(introspection.toolsOf(resource('a'))).toBeUndefined()
    expect(changed).toEqual([])
  })
})
