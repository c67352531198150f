import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EmbeddedApiServer, startApiServer } from '@thv/cluster/apiserver/api-server'
import { kubeconfigText } from '@thv/cluster/platform/kubeconfig'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runApply } from './apply-command.ts'

describe('apply to a server that is too busy to keep its connections', () => {
  let server: EmbeddedApiServer
  let front: Server
  let folder: string
  /** Connections that break before anything is answered. */
  let broken = 0

  beforeAll(async () => {
    server = await startApiServer()
    front = createServer((socket) => {
      socket.on('error', () => socket.destroy())
      if (broken > 0) {
        broken--
        socket.destroy()
        return
      }
      const behind = connect(Number(new URL(server.url).port), '127.0.0.1')
      behind.on('error', () => socket.destroy())
      socket.pipe(behind).pipe(socket)
    })
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
    folder = mkdtempSync(join(tmpdir(), 'thv-apply-'))
    mkdirSync(join(folder, '.thv'))
    const url = `https://127.0.0.1:${(front.address() as AddressInfo).port}`
    writeFileSync(join(folder, '.thv', 'kubeconfig'), kubeconfigText({ ...server, url }))
    for (const name of ['one', 'two'])
      writeFileSync(join(folder, `${name}.yaml`), `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n`)
  })
  afterAll(async () => {
    front?.close()
    await server?.close()
    rmSync(folder, { recursive: true })
  })

  async function apply(options: { readonly withinMs?: number }): Promise<string> {
    let out = ''
    const say = (text: string) => {
      out += text
    }
    const env = { out: say, err: say, cwd: folder, variables: { HOME: folder }, isTerminal: false }
    await runApply({ filename: ['one.yaml', 'two.yaml'], ...options }, env)
    return out
  }

  it('fails soon, or tries for the time that it is given', async () => {
    broken = 6
    await expect(apply({})).rejects.toMatchObject({ code: 'kube_unreachable' })
    broken = 6
    expect(await apply({ withinMs: 60_000 })).toBe('configmap/one created\nconfigmap/two created\n')
    expect(broken).toBe(0)
  })

  it('says at the end of that time what it waited for', async () => {
    broken = 1_000_000
    await expect(apply({ withinMs: 1 })).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringMatching(/^the API server did not answer within 0\.001 s \(1 attempt\): .*no connection/),
    })
  })
})
