import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { mountedPath } from './mounted-path.ts'
import { currentScope, type ProgramScope, programEnv, programPath, runInScope } from './program-scope.ts'

const scope = (name: string): ProgramScope => ({
  env: { NAME: name },
  cwd: `/pods/${name}`,
  writeOutput: () => true,
  onEnd: () => ({ [Symbol.dispose]() {} }),
})

describe('programs that share a process', () => {
  it('see their own variables and folder, also after waits and in timers', async () => {
    const seen = await Promise.all(
      ['a', 'b'].map((name) =>
        runInScope(scope(name), async () => {
          await sleep(1)
          return [programEnv()['NAME'], programPath('audit.log'), programPath('/var/audit.log')]
        }),
      ),
    )
    expect(seen).toEqual([
      ['a', '/pods/a/audit.log', '/var/audit.log'],
      ['b', '/pods/b/audit.log', '/var/audit.log'],
    ])
  })

  it('see them in the requests of their own servers, over connections that are kept too', async () => {
    const open = (name: string) =>
      runInScope(
        scope(name),
        () =>
          new Promise<ReturnType<typeof createServer>>((resolve) => {
            const server = createServer((_request, response) => response.end(programEnv()['NAME'])).listen(0, '127.0.0.1', () =>
              resolve(server),
            )
          }),
      )
    const servers = [await open('a'), await open('b')]
    const ask = (server: (typeof servers)[number]) =>
      new Promise<string>((resolve, reject) => {
        get({ host: '127.0.0.1', port: (server.address() as AddressInfo).port }, (response) => {
          response.setEncoding('utf8').once('data', resolve)
        }).once('error', reject)
      })
    const answers: string[] = []
    for (const server of [...servers, ...servers.toReversed(), ...servers]) answers.push(await ask(server))
    for (const server of servers) server.close()
    expect(answers).toEqual(['a', 'b', 'b', 'a', 'a', 'b'])
  })

  it('find mounted files below their own root', () => {
    const rooted = { ...scope('a'), env: { THV_ROOT: import.meta.dirname } }
    expect(runInScope(rooted, () => mountedPath('/program-scope.ts'))).toBe(`${import.meta.dirname}/program-scope.ts`)
    expect(runInScope(rooted, () => mountedPath('/not-there'))).toBe('/not-there')
    expect(runInScope(rooted, () => mountedPath('relative'))).toBe('/pods/a/relative')
  })

  it('do not exist elsewhere: the process has the variables', () => {
    expect([currentScope(), programEnv(), programPath('audit.log')]).toEqual([undefined, process.env, 'audit.log'])
  })
})
