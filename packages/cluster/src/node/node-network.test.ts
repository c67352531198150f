import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Pod } from '@thv/kube/objects/builtin-kinds'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ClaimedNetwork, claimNetwork } from './network/claim-network.ts'
import { createPodNetwork } from './network/pod-network.ts'
import { isReady, type NodeFixture, script, startFixture } from './testing/node-fixture.ts'

let fixture: NodeFixture
let claimed: ClaimedNetwork
let folder: string
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'thv-net-'))
  claimed = await claimNetwork(folder, process.platform === 'linux' ? { mode: 'addresses' } : {})
  fixture = await startFixture({ network: await createPodNetwork({ claimed, folder }) })
})
afterEach(async () => {
  await fixture[Symbol.asyncDispose]()
  await claimed.release()
  rmSync(folder, { recursive: true })
  expect(fixture.errors).toEqual([])
})

const SERVER = 'require("node:http").createServer((_, response) => response.end(process.env.NAME)).listen(3001, "0.0.0.0")'
const probed = (name: string, more: object = {}) =>
  script('node', SERVER, { env: [{ name: 'NAME', value: name }], readinessProbe: { httpGet: { port: 3001 }, periodSeconds: 1 }, ...more })
const ask = async (pod: Pod) => await (await fetch(`http://${pod.status?.podIP}:3001/`)).text()

describe.runIf(process.platform === 'linux')('pods on a real network', () => {
  it('listen on one port beside each other, each at its own address', async () => {
    await fixture.create('one', probed('one'))
    await fixture.create(
      'two',
      probed('two', {
        env: [
          { name: 'NAME', value: 'two' },
          { name: 'NODE_OPTIONS', value: '--no-warnings' },
        ],
      }),
    )
    const [one, two] = [await fixture.until('one', isReady), await fixture.until('two', isReady)]
    expect([await ask(one), await ask(two)]).toEqual(['one', 'two'])
    expect(one.status?.podIP).not.toBe(two.status?.podIP)
  })

  it('are ended when they get past the guard', async () => {
    const open = `exec env -u NODE_OPTIONS "${process.execPath}" -e '${SERVER.replace('3001', '0')}'`
    await fixture.create('open', script('sh', open))
    const pod = await fixture.until('open', ({ status }) => status?.reason === 'UnsafeBind')
    expect(pod.status?.message).toMatch(/listens on 0\.0\.0\.0:\d+/)
    expect(isReady(pod)).toBe(false)
  })
})
