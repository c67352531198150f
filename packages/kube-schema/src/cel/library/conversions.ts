import { Duration } from '@marcbachmann/cel-js/evaluator'
import { tryParseDuration } from '@thv/kernel/duration'
import { type Library, RuleError } from './define.ts'

const NANOSECONDS_PER_SECOND = 1_000_000_000

/** Conversions from text, with cel-go's words when they fail. */
export const conversions: Library = {
  functions: {
    'duration(string): google.protobuf.Duration': (text: string) => {
      const milliseconds = tryParseDuration(text)
      if (milliseconds === undefined) throw failed('google.protobuf.Duration')
      const nanoseconds = BigInt(Math.round(milliseconds * 1e6))
      const perSecond = BigInt(NANOSECONDS_PER_SECOND)
      return new Duration(nanoseconds / perSecond, Number(nanoseconds % perSecond))
    },
    'timestamp(string): google.protobuf.Timestamp': (text: string) => {
      const time = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/.test(text) ? new Date(text) : undefined
      if (!time || Number.isNaN(time.getTime())) throw failed('google.protobuf.Timestamp')
      return time
    },
    'timestamp(int): google.protobuf.Timestamp': (seconds: bigint) => new Date(Number(seconds) * 1000),
  },
}

function failed(type: string): RuleError {
  return new RuleError(`type conversion error from 'string' to '${type}'`)
}
