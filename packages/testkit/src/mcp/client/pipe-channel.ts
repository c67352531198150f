import type { Readable, Writable } from 'node:stream'
import { ThvError } from '@thv/kernel/errors'
import type { DuplexChannel, DuplexLink } from '@thv/mcp/client/duplex-link'
import { LineFramer } from '@thv/mcp/line-framer'
import { writeLine } from '@thv/mcp/write-line'

/** The ends of a server process that belong to its client. */
export interface StdioStreams {
  /** The server's standard input. */
  readonly input: Writable
  /** The server's standard output. */
  readonly output: Readable
}

/** Lines to and from a process. It closes its input, which asks the process to end; to make sure that it does is for who started it. */
export function openPipe(link: DuplexLink, { input, output }: StdioStreams, maxLineBytes: number): DuplexChannel {
  const framer = new LineFramer({
    maxLineBytes,
    onMessage: (message) => link.take(message),
    onNoise: ({ id, reason, preview }) => link.takeInvalid({ id, detail: `${reason}: ${JSON.stringify(preview)}` }),
  })
  const onData = (chunk: Uint8Array | string) => framer.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
  const onEnd = () => {
    framer.end()
    link.end(new ThvError('stream_closed', 'the MCP server closed its output'))
  }
  const onError = (error: Error) => link.end(new ThvError('stream_closed', 'the pipe to the MCP server broke', { cause: error }))
  output.on('data', onData).once('end', onEnd).once('close', onEnd).on('error', onError)
  input.on('error', onError)
  return {
    write: (json, signal) => writeLine(input, json, signal),
    async close() {
      output.off('data', onData)
      output.resume() // what the process still prints must not block its end
      input.end()
    },
  }
}
