import { isThvError, ThvError } from '@thv/kernel/errors'
import type { ClientContext } from '@thv/mcp/client/client-context'
import type { ServerIdentity } from '@thv/mcp/client/engine'
import { discoverRequest, identityIn } from '@thv/mcp/client/http/probe-http'
import { METHODS } from '@thv/mcp/methods'
import { type ProbeOutcome, verdictOf } from '@thv/mcp/probe'
import type { Pipe } from './stdio-client.ts'

/** A process answers within this time once it is up. */
const ANSWER_MS = 3_000

export interface StdioProbe {
  readonly verdict: 'modern' | 'legacy'
  readonly identity: ServerIdentity | undefined
}

/** Asks a process for its era. Silence and exit mean legacy here: some servers do just that on a request they do not know. */
export async function probeStdio(pipe: Pipe, context: ClientContext, signal: AbortSignal): Promise<StdioProbe> {
  const first = await probeOnce(pipe, context, signal)
  const verdict = verdictOf(first.outcome)
  const last = verdict.verdict === 'retry' ? await probeOnce(pipe, context, signal) : first
  const final = last === first ? verdict : verdictOf(last.outcome, true)
  if (final.verdict === 'modern' || final.verdict === 'legacy') return { verdict: final.verdict, identity: last.identity }
  throw new ThvError('mcp_no_common_version', 'the MCP server and this client have no revision in common')
}

async function probeOnce(
  { link, output }: Pipe,
  context: ClientContext,
  signal: AbortSignal,
): Promise<{ outcome: ProbeOutcome; identity?: ServerIdentity | undefined }> {
  const silence = silenceOf(output, context)
  try {
    const limited = AbortSignal.any([signal, silence.signal])
    const answer = await link.request(discoverRequest(context), { signal: limited, receive: () => {} })
    const { body } = answer
    if (body === undefined) return { outcome: { kind: 'stdio_silence' } }
    return { outcome: { kind: 'stdio', body }, identity: identityIn(answer) }
  } catch (error) {
    if (signal.aborted) throw error
    if (silence.signal.aborted) return { outcome: { kind: 'stdio_silence' } }
    if (isThvError(error, 'stream_closed')) return { outcome: { kind: 'stdio_exit' } }
    throw error
  } finally {
    silence.stop()
  }
}

/**
 * The time to answer counts from the first byte, as a process may take long to come up; one that never writes is given half of the
 * time for connecting, so that the other half is left for the handshake.
 */
function silenceOf(output: Pipe['output'], { clock, limits }: ClientContext): { signal: AbortSignal; stop(): void } {
  const controller = new AbortController()
  const abort = () => controller.abort(new ThvError('timeout', `no answer to ${METHODS.discover}`))
  const startedAt = clock.monotonic()
  const longest = limits.connectTimeoutMs / 2
  let timer = clock.setTimer(longest, abort)
  const onData = () => {
    const elapsed = clock.monotonic() - startedAt
    timer.cancel()
    timer = clock.setTimer(Math.min(Math.max(elapsed, ANSWER_MS) + ANSWER_MS, longest) - elapsed, abort)
  }
  output.once('data', onData)
  return {
    signal: controller.signal,
    stop: () => {
      timer.cancel()
      output.off('data', onData)
    },
  }
}
