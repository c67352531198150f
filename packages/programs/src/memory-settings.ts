import settings from './memory-settings.json' with { type: 'json' }

/**
 * Environment of our own programs, in the image and on the local platform. Node and malloc read it when a process starts.
 *
 * A small nursery: V8 would grow it to 64 MB for the garbage of concurrent requests and use a sixth of it. One malloc arena that is
 * trimmed: threads of V8's compiler would each keep their own. Other allocators ignore the last two.
 */
export const MEMORY_SETTINGS: Readonly<typeof settings> = settings

type Env = Readonly<Record<string, string | undefined>>

/** The settings for programs that a process with this environment starts: a variable that the user has set stays as it is. */
export function memorySettings(env: Env): Record<string, string> {
  return Object.fromEntries(Object.entries(MEMORY_SETTINGS).map(([name, value]) => [name, env[name] || value]))
}

/** Values of the user that Node and malloc would pass over without a word. What Node rejects, it names itself and does not start. */
export function memorySettingProblems(env: Env): string[] {
  const words = (env['NODE_OPTIONS'] ?? '').match(/(?:"(?:[^"\\]|\\.)*"|[^\s"])+/g) ?? []
  const noOptions = words.filter((word, at) => !/^"?-/.test(word) && !takesValue(words[at - 1]))
  const notNumbers = Object.keys(MEMORY_SETTINGS).filter((name) => name.startsWith('MALLOC_') && env[name] && !/^\d+$/.test(env[name]))
  return [
    ...noOptions.map((word) => `NODE_OPTIONS: ${JSON.stringify(word)} is not an option and has no effect: options start with a dash`),
    ...notNumbers.map((name) => `${name}: ${JSON.stringify(env[name])} is not a number and has no effect`),
  ]
}

/** Whether the word after this one is its value, as in `--require ./hook.js`. */
function takesValue(option: string | undefined): boolean {
  return option !== undefined && /^"?-/.test(option) && !option.includes('=')
}
