import { runInScope } from '@thv/kernel/program-scope'
import { describe, expect, it } from 'vitest'
import { listenHost } from './listen-host.ts'

const POD = '127.9.130.7'
const hosted = (host: string, port: number) =>
  runInScope({ env: { THV_BIND_ADDRESS: POD }, cwd: '/', writeOutput: () => true, onEnd: () => ({ [Symbol.dispose]() {} }) }, () =>
    listenHost({ host, port }),
  )

describe('the address of a program that shares its process', () => {
  it.each(['0.0.0.0', '::', '0:0:0:0:0:0:0:0', '', '0', '::ffff:0.0.0.0', '127.0.0.1', 'localhost', 'LOCALHOST.', '::1'])(
    'is that of its pod in place of %j',
    (host) => expect(hosted(host, 8080)).toBe(POD),
  )

  it('is loopback for a free port, as under the bind guard', () => {
    expect(hosted('0.0.0.0', 0)).toBe('127.0.0.1')
    expect(hosted('127.0.0.1', 0)).toBe('127.0.0.1')
  })

  it('is any other that it names', () => expect(hosted('127.9.130.8', 8080)).toBe('127.9.130.8'))

  it('is as written in a process with one program', () => expect(listenHost({ host: '0.0.0.0', port: 8080 })).toBe('0.0.0.0'))
})
