import { createEventRecorder } from '@thv/kube/events/events'
import { configMaps } from '@thv/kube/objects/resource-types'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { embeddedPlace } from '../testing/command-place.ts'
import { runThv } from '../testing/run-thv.ts'

let place: Awaited<ReturnType<typeof embeddedPlace>>
beforeAll(async () => {
  place = await embeddedPlace()
  await place.client.create(configMaps, { metadata: { name: 'first', namespace: 'default' }, data: { a: '1' } })
})
afterAll(() => place.stop())

async function watching(args: string[], change: () => Promise<unknown>, expected: RegExp): Promise<void> {
  const stop = new AbortController()
  let out = ''
  const run = runThv(['get', 'cm', '-w', ...args], {
    cwd: place.folder,
    signal: stop.signal,
    out: (text) => {
      out += text
    },
  })
  await vi.waitFor(() => expect(out).toContain('first'), { timeout: 15_000 })
  await change()
  await vi.waitFor(() => expect(out).toMatch(expected), { timeout: 15_000 })
  stop.abort(new Error('interrupted'))
  expect((await run).error).toBeUndefined()
}

const patch = (data: Record<string, string>) =>
  place.client.patch(configMaps, { namespace: 'default', name: 'first' }, { kind: 'merge', body: { data } })

it('get -w goes on with what changes, under one heading', async () => {
  await watching([], () => patch({ b: '2' }), /^NAME +DATA +AGE\nfirst +1 +\S+\nfirst +2 +\S+\n$/)
})

it('get -w -o name and -o yaml too', async () => {
  await watching(['-o', 'name'], () => patch({ c: '3' }), /^configmap\/first\nconfigmap\/first\n$/)
  await watching(['first', '-o', 'yaml'], () => patch({ d: '4' }), /^apiVersion: v1\n[\s\S]*\n---\napiVersion: v1\n[\s\S]*d: "4"/)
})

it('describe shows what happened', async () => {
  const events = createEventRecorder({ client: place.client, controller: 'example.com/tester', instance: 'one' })
  const object = await place.client.get(configMaps, { namespace: 'default', name: 'first' })
  for (let count = 0; count < 3; count++)
    events.record(configMaps, object, { type: 'Warning', reason: 'Odd', note: 'it is odd', action: 'Look' })
  await events.flush(AbortSignal.timeout(15_000))
  const { out } = await place.thv('describe', 'cm/first')
  expect(out).toMatch(/\nEvents:\n {2}TYPE +AGE +REASON +FROM +MESSAGE\n {2}Warning +\d+s \(×3\) +Odd +example\.com\/tester +it is odd\n/)
})
