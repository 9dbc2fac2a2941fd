// The modern server with nothing changed. It refuses initialize.
import { answer, modern, serve } from './server.mjs';

serve(message => answer(modern(message)));
