// npm start: the platform on this machine with the quick start, until Ctrl-C. The same as "npx thv up"; words after "--" go to it.
import { runBundled } from './bundle.mjs'

if (process.argv[2] !== 'up') process.argv.splice(2, 0, 'up') // it is there when this program has started itself again
await runBundled('apps/cli/src/main.ts')
