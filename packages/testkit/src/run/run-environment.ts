/*
 * Settings of a test run that come from the environment. A value that cannot be used is an error, because a loop of zero rounds or of
 * NaN rounds proves nothing and passes.
 */

/** Whether this is a run of CI: `CI` is set to anything but an empty string, `0` or `false`. */
export function isCi(env: NodeJS.ProcessEnv = process.env): boolean {
  return !['', '0', 'false'].includes((env['CI'] ?? '').toLowerCase())
}

/** How many times as long the fault loops run: `SOAK`, 1 by default. */
export function soakRounds(env: NodeJS.ProcessEnv = process.env): number {
  return positiveCount('SOAK', 1, env)
}

/** A whole number from 1 on from the environment variable `name`, or `fallback` where it is not set. */
export function positiveCount(name: string, fallback: number, env: NodeJS.ProcessEnv = process.env): number {
  const text = env[name]
  if (text === undefined) return fallback
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new Error(`${name}=${text}: set it to a whole number from 1 on, or unset it`)
  return Number(text)
}
