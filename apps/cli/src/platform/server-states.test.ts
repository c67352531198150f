import type { Pod } from '@thv/kube/objects/builtin-kinds'
import { RunnerReason } from '@thv/runconfig/runner-events'
import { describe, expect, it } from 'vitest'
import { operatorState, type ServerResource, serverState } from './server-states.ts'

const IMAGE = 'npx://thing@1.0.0'
const URL = 'http://127.5.0.1:8080/mcp'

function server(status?: ServerResource['status']): ServerResource {
  return { kind: 'MCPServer', metadata: { name: 'thing', generation: 2 }, spec: { image: IMAGE }, ...(status && { status }) }
}

function pod(image: string, status: Pod['status']): Pod {
  return { metadata: { name: 'thing-0' }, spec: { containers: [{ name: 'mcp', image }] }, ...(status && { status }) }
}

const waiting = (reason: string, message?: string) => ({
  containerStatuses: [{ name: 'mcp', state: { waiting: { reason, ...(message && { message }) } } }],
})
const starting = { phase: 'Pending', conditions: [{ type: 'Ready', status: 'False', reason: 'PodsNotReady', message: 'wait' }] }
const ready = { url: URL, observedGeneration: 2, conditions: [{ type: 'Ready', status: 'True' }] }

describe('the state of a server', () => {
  it.each([
    ['not seen by the operator yet', server(), [], { state: 'waiting', detail: 'for the operator' }],
    ['it was seen', server(starting), [], { state: 'starting', detail: '' }],
    ['its proxy starts', server(starting), [pod('toolhive-ts:1', { phase: 'Running' })], { state: 'starting', detail: 'the proxy' }],
    ['its package comes', server(starting), [pod(IMAGE, waiting('ContainerCreating'))], { state: 'pulling', detail: IMAGE }],
    ['it starts', server(starting), [pod(IMAGE, { phase: 'Running' })], { state: 'starting', detail: 'the server' }],
    ['it is ready', server(ready), [], { state: 'ready', url: URL, detail: '' }],
    ['an older one is ready', server({ ...ready, observedGeneration: 1 }), [], { state: 'starting' }],
    [
      'its package is not there',
      server(starting),
      [pod(IMAGE, waiting('ImagePullBackOff', 'npm says:\n404'))],
      { state: 'failing', detail: 'pod thing-0: no image: npm says: 404' },
    ],
    [
      'its package is not there, tried again: the same words',
      server(starting),
      [pod(IMAGE, waiting('ImagePullBackOff', `Back-off pulling image "${IMAGE}": ErrImagePull: image: npm says: 404`))],
      { state: 'failing', detail: 'pod thing-0: no image: npm says: 404' },
    ],
    [
      'there is no network',
      server(starting),
      [pod(IMAGE, waiting('ErrImagePull', 'thing could not be installed: code ENOTFOUND'))],
      { state: 'failing', detail: expect.stringMatching(/ENOTFOUND\. .*check the network/) },
    ],
    [
      'its pod is not allowed',
      server(starting),
      [pod(IMAGE, { phase: 'Failed', reason: 'UnsafeBind', message: 'it listens on 0.0.0.0:1' })],
      { state: 'failing', detail: 'pod thing-0: UnsafeBind: it listens on 0.0.0.0:1' },
    ],
    [
      'its port is wrong, as its runner tells',
      server({ conditions: [{ type: 'Ready', status: 'False', reason: 'BackendPortClosed', message: 'Nothing listens on port 1.' }] }),
      [pod(IMAGE, { phase: 'Running' })],
      { state: 'failing', detail: 'Nothing listens on port 1.' },
    ],
    [
      'its change is refused while an older one serves',
      server({
        ...ready,
        observedGeneration: 1,
        conditions: [...ready.conditions, { type: 'WriteRefused', status: 'True', message: 'No quota.', observedGeneration: 2 }],
      }),
      [],
      { state: 'failing', detail: 'No quota.' },
    ],
    [
      'a change before the latest was refused',
      server({
        ...ready,
        observedGeneration: 1,
        conditions: [...ready.conditions, { type: 'WriteRefused', status: 'True', message: 'No quota.', observedGeneration: 1 }],
      }),
      [],
      { state: 'starting' },
    ],
    ['it is refused', server({ ...starting, phase: 'Failed', message: 'no' }), [], { state: 'failing', detail: 'no' }],
  ])('%s', (_title, resource, pods, expected) => {
    expect(serverState(resource, pods)).toMatchObject({ name: 'thing', ...expected })
  })

  it.each(Object.values(RunnerReason))('%s, as its runner reports it, comes before the state of its pods', (reason) => {
    const crashing = pod(IMAGE, waiting('CrashLoopBackOff', 'back-off 10s'))
    const told = server({ conditions: [{ type: 'Ready', status: 'False', reason, message: 'The cause, and the field to change.' }] })
    expect(serverState(told, [crashing])).toEqual({ name: 'thing', state: 'failing', detail: 'The cause, and the field to change.' })
  })

  it('says how a crashing server ended', () => {
    const crashed: Pod['status'] = {
      containerStatuses: [
        {
          name: 'mcp',
          state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s' } },
          lastState: { terminated: { exitCode: 3 } },
        },
      ],
    }
    expect(serverState(server(starting), [pod(IMAGE, crashed)]).detail).toBe(
      'pod thing-0: CrashLoopBackOff: exit code 3; "thv logs pod/thing-0" shows why',
    )
  })

  it('the fragment of an old transport is not part of the URL', () => {
    expect(serverState(server({ ...ready, url: 'http://127.5.0.1:8080/sse#thing' }), []).url).toBe('http://127.5.0.1:8080/sse')
  })
})

describe('the state of the operator', () => {
  it.each([
    ['waiting', undefined, []],
    ['starting', { metadata: { name: 'operator' } }, []],
    ['failing', { metadata: { name: 'operator' } }, [pod('x', waiting('CrashLoopBackOff'))]],
    ['ready', { metadata: { name: 'operator' }, status: { availableReplicas: 1 } }, []],
  ] as const)('%s', (state, deployment, pods) => {
    expect(operatorState(deployment, pods).state).toBe(state)
  })
})
