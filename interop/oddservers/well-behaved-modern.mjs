// The modern server without a change. It refuses initialize.
import { answer, modern, serve } from './server.mjs';

serve(message => answer(modern(message)));
