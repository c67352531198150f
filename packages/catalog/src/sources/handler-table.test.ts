import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createOutbound } from '@thv/http/outbound/outbound'
import { startBackend } from '@thv/http/testing/backend'
import { afterAll, describe, expect, it } from 'vitest'
import type { FetchContext, FetchResult } from './fetch/registry-handler.ts'
import type { SourceConfig } from './fetch/source-config.ts'
import { startFakeGitServer } from './git/testing/fake-git-server.ts'
import { buildCommit } from './git/testing/pack-builder.ts'
import { createHandlers } from './handlers.ts'
import { documentText, failure, namesOf, testContext } from './testing/fetch-context.ts'
import { startOtherRegistry } from './testing/other-registry.ts'

/* One table for all handlers that fetch: the registry server and the operator use them through the same three calls. */

const outbound = createOutbound()
const handlers = createHandlers({ outbound, backoff: { baseMs: 1, maxMs: 5 } })
const folder = mkdtempSync(join(tmpdir(), 'thv-handlers-'))
afterAll(async () => {
  await outbound.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Somewhere to fetch from. */
interface Origin extends AsyncDisposable {
  readonly source: SourceConfig
  /** The servers of these names are all there is, from now on. */
  hold(...names: string[]): Promise<void>
}

interface Row {
  readonly name: string
  readonly type: 'git' | 'api' | 'file'
  open(): Promise<Origin>
  readonly wrong: SourceConfig
  readonly missing: SourceConfig
}

const base = { name: 'x', intervalMs: 60_000 } as const
const textOf = (names: readonly string[]) => `[${names.map((name) => documentText(name)).join()}]`
const NOWHERE = 'http://127.0.0.1:1'

const TABLE: readonly Row[] = [
  {
    name: 'git',
    type: 'git',
    async open() {
      let commit = buildCommit({ 'registry.json': textOf([]) })
      let server = await startFakeGitServer(commit)
      const origin = {
        source: { ...base, git: { repository: `${server.url}/r.git` }, format: 'upstream' } as SourceConfig,
        async hold(...names: string[]) {
          commit = buildCommit({ 'registry.json': textOf(names) })
          await server[Symbol.asyncDispose]()
          server = await startFakeGitServer(commit)
          Object.assign(origin, { source: { ...base, git: { repository: `${server.url}/r.git` }, format: 'upstream' } })
        },
        [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
      }
      return origin
    },
    wrong: { ...base, git: { repository: 'ssh://git@example.com/r' } },
    missing: { ...base, git: { repository: `${NOWHERE}/r.git` } },
  },
  {
    name: 'another registry',
    type: 'api',
    async open() {
      const other = await startOtherRegistry()
      const known = new Set<string>()
      return {
        source: { ...base, api: { endpoint: other.url } },
        async hold(...names) {
          for (const name of known) if (!names.includes(name)) other.remove(name)
          for (const name of names) other.put(name, { updatedAt: new Date().toISOString() })
          for (const name of names) known.add(name)
        },
        [Symbol.asyncDispose]: () => other[Symbol.asyncDispose](),
      }
    },
    wrong: { ...base, api: { endpoint: 'ftp://example.com' } },
    missing: { ...base, api: { endpoint: NOWHERE } },
  },
  {
    name: 'a mounted file, as of a ConfigMap',
    type: 'file',
    async open() {
      const path = join(folder, 'registry.json')
      return {
        source: { ...base, file: { path } },
        hold: async (...names) => writeFileSync(path, textOf(names)),
        [Symbol.asyncDispose]: async () => rmSync(path, { force: true }),
      }
    },
    wrong: { ...base, file: { path: 'relative.json' } },
    missing: { ...base, file: { path: join(folder, 'missing.json') } },
  },
  {
    name: 'a file at an address',
    type: 'file',
    async open() {
      let text = '[]'
      const backend = await startBackend((_, response) => void response.writeHead(200).end(text))
      return {
        source: { ...base, file: { url: `${backend.url}/registry.json` } },
        hold: async (...names) => {
          text = textOf(names)
        },
        [Symbol.asyncDispose]: () => backend[Symbol.asyncDispose](),
      }
    },
    wrong: { ...base, file: { url: 'file:///etc/passwd' } },
    missing: { ...base, file: { url: `${NOWHERE}/registry.json` } },
  },
]

describe.each(TABLE)('the handler of $name', ({ type, open, wrong, missing }) => {
  const handler = handlers[type]
  const fetched = (source: SourceConfig, context?: Partial<Omit<FetchContext, 'limits'>>): Promise<FetchResult> =>
    handler.fetchRegistry(source, testContext(context))

  it('[002-264] validates, fetches all entries with a hash, knows what has not changed, and sees what has', async () => {
    await using origin = await open()
    await origin.hold('a', 'b')
    expect(handler.validate(origin.source)).toEqual([])
    const first = await fetched(origin.source)
    expect(first).toMatchObject({ kind: 'full', problems: [] })
    expect(namesOf(first)).toEqual(['io.example/a@1.0.0', 'io.example/b@1.0.0'])
    if (first.kind !== 'full') throw new Error('not full')
    expect(first.entries.map(({ text }) => JSON.parse(text))).toEqual(['a', 'b'].map((name) => JSON.parse(documentText(name))))
    expect(JSON.parse(JSON.stringify(first.state))).toEqual(first.state)
    const again = await fetched(origin.source, { state: first.state })
    expect(again).toMatchObject({ kind: 'unchanged', hash: first.hash })

    await origin.hold('a', 'c')
    const second = await fetched(origin.source)
    expect(namesOf(second)).toEqual(['io.example/a@1.0.0', 'io.example/c@1.0.0'])
    expect(second.hash).not.toBe(first.hash)
  })

  it('[002-264] gives the hash of a fetch that shares its context', async () => {
    await using origin = await open()
    await origin.hold('a')
    const context = testContext()
    const hash = await handler.currentHash(origin.source, context)
    expect((await handler.fetchRegistry(origin.source, context)).hash).toBe(hash)
  })

  it('[002-264] names what is wrong with a configuration, and fails with a code where nothing is', async () => {
    const problems = handler.validate(wrong)
    expect(problems.length).toBeGreaterThan(0)
    for (const problem of problems) expect(problem).toMatch(/^\/(git|api|file)\//)
    expect(await failure(fetched(missing))).toMatch(/^source_\w+: /)
  })

  it('[002-264] ends at once when it is aborted, and refuses more than the limit', async () => {
    await using origin = await open()
    await origin.hold('a', 'b')
    await expect(fetched(origin.source, { signal: AbortSignal.abort(new Error('stop')) })).rejects.toThrow()
    const small = testContext({ limits: { maxBytes: 10, maxWireBytes: 10 } })
    expect(await failure(handler.fetchRegistry(origin.source, small))).toMatch(/^source_limit: /)
  })
})
